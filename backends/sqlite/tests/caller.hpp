// SPDX-License-Identifier: BSL-1.0
#pragma once

// A caller of calendar and spent_tokens, with transactions of his own.

#include <sqlite3.h>

#include <stdexcept>
#include <string>

namespace scratch {

/// A connection as a server's own code has one. Not thread-safe.
class caller {
public:
    explicit caller(const std::string& path)
    {
        if (sqlite3_open(path.c_str(), &db_) != SQLITE_OK) throw std::runtime_error(path);
        sqlite3_busy_timeout(db_, 20'000);
        run("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF");
    }
    ~caller() { sqlite3_close(db_); }
    caller(const caller&)            = delete;
    caller& operator=(const caller&) = delete;

    operator sqlite3*() const { return db_; }

    bool run(const std::string& sql)
    {
        return sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
    }

private:
    sqlite3* db_ = nullptr;
};

}  // namespace scratch
