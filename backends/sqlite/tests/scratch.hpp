// SPDX-License-Identifier: BSL-1.0
#pragma once

// What these tests share: a folder that goes away, another connection to a file, other processes.

#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "weir/sqlite/store.hpp"

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

/// Processes that start together. Make them while no store is open here: a store has a thread.
class crew {
public:
    crew()
    {
        if (pipe(ready_) != 0 || pipe(start_) != 0 || pipe(told_) != 0) std::abort();
    }
    ~crew()
    {
        for (const int end : {ready_[0], ready_[1], start_[0], start_[1], told_[0], told_[1]})
            if (end >= 0) close(end);
    }
    crew(const crew&)            = delete;
    crew& operator=(const crew&) = delete;

    /// `work(wait)` runs in a process of its own, calls `wait()` when it is ready, and returns a
    /// number that `sum` adds up.
    template <class Work>
    pid_t add(Work&& work)
    {
        const auto child = fork();
        if (child != 0) return pids_.emplace_back(child);
        close(start_[1]);
        const std::uint64_t made = work([this] {
            char byte = 0;
            must(write(ready_[1], &byte, 1) == 1);
            must(read(start_[0], &byte, 1) == 0);  // until nobody holds the other end any more
        });
        const auto written = write(told_[1], &made, sizeof made);
        _exit(written == sizeof made ? 0 : 1);
    }

    /// Once all are ready.
    void start()
    {
        char byte = 0;
        for (std::size_t n = 0; n < pids_.size(); ++n) must(read(ready_[0], &byte, 1) == 1);
        close(std::exchange(start_[1], -1));
    }

    /// What those told that came to their end.
    std::uint64_t sum()
    {
        for (int* const end : {&start_[1], &told_[1]})
            if (*end >= 0) close(std::exchange(*end, -1));
        std::uint64_t all = 0, one = 0;
        while (read(told_[0], &one, sizeof one) == sizeof one) all += one;
        for (const auto child : pids_) waitpid(child, nullptr, 0);
        return all;
    }

private:
    static void must(bool done)
    {
        if (!done) std::abort();
    }

    int                ready_[2] = {-1, -1};
    int                start_[2] = {-1, -1};
    int                told_[2]  = {-1, -1};
    std::vector<pid_t> pids_;
};

}  // namespace scratch
