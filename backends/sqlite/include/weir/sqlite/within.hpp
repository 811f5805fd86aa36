// SPDX-License-Identifier: BSL-1.0
#pragma once

// Statements on a connection, and within a transaction, of the caller's own: what calendar and
// spent_tokens have in common, not for users. Needs no header of SQLite.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

#include "weir/key.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace weir::sqlite::within {

using value = std::variant<std::int64_t, std::string_view, key>;

/// One statement, run once for each set of values. Once it failed it does nothing more.
class query {
public:
    query(sqlite3* by, const char* sql) noexcept;
    ~query();
    query(const query&)            = delete;
    query& operator=(const query&) = delete;

    /// Whether a row came; none if there is none and if it failed. The values are read until the
    /// next run.
    bool run(std::initializer_list<value> values) noexcept;

    [[nodiscard]] bool         failed() const noexcept { return failed_; }
    [[nodiscard]] std::int64_t number(int column) const noexcept;
    [[nodiscard]] std::string  text(int column) const;

private:
    sqlite3_stmt* text_   = nullptr;
    bool          failed_ = false;
};

/// Runs one statement that yields no row. False if it failed.
bool did(sqlite3* by, const char* sql, std::initializer_list<value> values) noexcept;

/// Whether the caller has begun a transaction that still stands.
[[nodiscard]] bool in_transaction(sqlite3* by) noexcept;

/// How many rows the last statement changed.
[[nodiscard]] std::int64_t changes(sqlite3* by) noexcept;

/// Makes `part` of the file with `text` if it is missing. Throws std::invalid_argument for a file
/// that cannot be written, or that is of a version that this program does not know.
void settle(sqlite3* by, std::string_view part, const char* text);

}  // namespace weir::sqlite::within
