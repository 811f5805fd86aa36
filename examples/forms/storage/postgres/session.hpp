// SPDX-License-Identifier: BSL-1.0
#pragma once

// As much of libpq as this server needs: a connection on which no statement waits longer than its
// deadline. Nothing of a session is used that a transaction does not end with, so that a pooler may
// stand between.

#include "storage/records.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct pg_conn;
struct pg_result;

namespace forms::postgres {

/// The connection is of no use any more: it broke, was too late, or leads to the wrong server.
struct lost : storage_error {
    using storage_error::storage_error;
};

/// An array of texts in the server's notation; none is NULL.
class text_array {
public:
    void add(const std::optional<std::string>& text);

    [[nodiscard]] std::string text() && { return std::move(written_ += '}'); }

private:
    std::string written_ = "{";
};

/// An answer.
class rows {
public:
    explicit rows(pg_result* made) : made_(made) {}

    [[nodiscard]] int              size() const noexcept;
    [[nodiscard]] std::string      text(int row, int column) const;
    [[nodiscard]] std::int64_t     integer(int row, int column) const;  ///< As it is written.
    [[nodiscard]] bool             truth(int row, int column) const;
    [[nodiscard]] const pg_result* get() const noexcept { return made_.get(); }

private:
    struct clear {
        void operator()(pg_result* made) const noexcept;
    };

    std::unique_ptr<pg_result, clear> made_;
};

/// For one thread at a time.
class session {
public:
    using clock      = std::chrono::steady_clock;
    using time_point = clock::time_point;

    /// Connects. Throws lost. Looking up a host's name knows no deadline.
    session(const std::string& conninfo, time_point until);

    /// One statement and the texts for $1, $2, … Throws lost; storage_refused for values that the
    /// server does not take; else storage_error.
    rows run(const char* sql, const std::vector<std::string>& values, time_point until);

    /// Several statements in one transaction.
    void execute(const std::string& sql, time_point until);

    /// False once the server has ended it: between two statements it has nothing else to say.
    [[nodiscard]] bool usable() const noexcept;

private:
    struct close {
        void operator()(pg_conn* db) const noexcept;
    };

    [[noreturn]] void fail(const std::string& doing) const;
    void              wait(bool writing, time_point until) const;
    rows              finish(time_point until);
    rows              checked(rows made) const;

    std::unique_ptr<pg_conn, close> db_;
};

}  // namespace forms::postgres
