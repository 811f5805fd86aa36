// SPDX-License-Identifier: BSL-1.0
#pragma once

// What these tests share: a folder that goes away, another connection to a file, other processes.

#include <sqlite3.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "weir/sqlite/store.hpp"

#include "../../../tests/reference/processes.hpp"

namespace scratch {

class folder {
public:
    folder()
    {
        auto name = (std::filesystem::temp_directory_path() / "weir-XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr) std::abort();
        path_ = name;
    }
    ~folder() { std::filesystem::remove_all(path_); }
    folder(const folder&)            = delete;
    folder& operator=(const folder&) = delete;

    [[nodiscard]] std::string operator/(const char* name) const { return (path_ / name).string(); }

private:
    std::filesystem::path path_;
};

/// Options of a store of tests: it can wait long, so that a busy machine is no outage.
inline weir::sqlite::store_options in(const std::string& path)
{
    return {.path     = path,
            .secret   = "a secret of thirty-two bytes....",
            .deadline = std::chrono::seconds(20),
            .patience = std::chrono::seconds(60)};
}

/// Another hand on the file, as an operator's shell or another process is.
class hand {
public:
    explicit hand(const std::string& path)
    {
        if (sqlite3_open(path.c_str(), &db_) != SQLITE_OK) std::abort();
        sqlite3_busy_timeout(db_, 20'000);
    }
    ~hand() { sqlite3_close(db_); }
    hand(const hand&)            = delete;
    hand& operator=(const hand&) = delete;

    int run(const std::string& sql)
    {
        return sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
    }

    std::int64_t number(const std::string& sql)
    {
        sqlite3_stmt* query = nullptr;
        if (sqlite3_prepare_v2(db_, sql.c_str(), -1, &query, nullptr) != SQLITE_OK) std::abort();
        const auto made = sqlite3_step(query) == SQLITE_ROW ? sqlite3_column_int64(query, 0) : -1;
        sqlite3_finalize(query);
        return made;
    }

private:
    sqlite3* db_ = nullptr;
};

using reference::crew;

}  // namespace scratch
