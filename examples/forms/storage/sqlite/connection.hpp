// SPDX-License-Identifier: BSL-1.0
#pragma once

// As much of SQLite as this server needs: a connection, and statements that are prepared once.

#include "storage/records.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace forms::sqlite {

/// A statement under way; it goes back to its connection when it ends. Values are bound in order:
///
///     auto row = on.run("SELECT active FROM endpoints WHERE id = ?", id);
///     while (row.next()) … row.integer(0) …
class statement {
public:
    template <class... Value>
    statement(sqlite3* on, sqlite3_stmt* prepared, const Value&... values)
        : on_(on), prepared_(prepared)
    {
        int index = 0;
        (bind(++index, values), ...);
    }
    ~statement();
    statement(const statement&)            = delete;
    statement& operator=(const statement&) = delete;

    /// Steps to the next row; false when there is none. Throws storage_error.
    bool next();

    [[nodiscard]] std::int64_t     integer(int column) const;
    [[nodiscard]] std::string_view text(int column) const;  ///< Until the next step.

private:
    void bind(int index, std::int64_t value);
    void bind(int index, std::string_view text);  ///< Borrowed until the statement ends.
    void bind(int index, const std::optional<std::string>& text);  ///< None is NULL.

    sqlite3*      on_;
    sqlite3_stmt* prepared_;
};

/// One connection, for one thread at a time. Every function throws storage_error.
class connection {
public:
    /// Opens or creates the file: write-ahead log, and a commit is on the disk when it returns.
    explicit connection(const std::string& path);

    /// Runs one or more statements without values.
    void execute(const char* sql);

    /// Prepares (once) and binds. `sql` must be a literal: it is the key of what is prepared.
    template <class... Value>
    statement run(const char* sql, const Value&... values)
    {
        return statement(handle_.get(), prepared(sql), values...);
    }

    /// Rows that the last INSERT, UPDATE or DELETE changed.
    [[nodiscard]] std::int64_t changed() const;

private:
    struct close {
        void operator()(sqlite3* handle) const noexcept;
    };
    struct finalize {
        void operator()(sqlite3_stmt* prepared) const noexcept;
    };

    sqlite3_stmt* prepared(const char* sql);

    std::unique_ptr<sqlite3, close>                                handle_;
    std::map<const char*, std::unique_ptr<sqlite3_stmt, finalize>> prepared_;
};

}  // namespace forms::sqlite
