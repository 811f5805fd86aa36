// SPDX-License-Identifier: BSL-1.0

#include "weir/sqlite/within.hpp"

#include <sqlite3.h>

#include <array>

#include "weir/invalid.hpp"

namespace weir::sqlite::within {
namespace {

/// The highest byte first, so that rows lie in the order of keys.
std::array<unsigned char, 16> bytes_of_key(const key& id) noexcept
{
    std::array<unsigned char, 16> bytes;
    for (std::size_t i = 0; i < 8; ++i) {
        bytes[i]     = static_cast<unsigned char>(id.high >> (56 - 8 * i));
        bytes[i + 8] = static_cast<unsigned char>(id.low >> (56 - 8 * i));
    }
    return bytes;
}

struct bind {
    sqlite3_stmt* to;
    int           place;

    int operator()(std::int64_t number) const { return sqlite3_bind_int64(to, place, number); }
    int operator()(std::string_view text) const
    {
        return sqlite3_bind_text(to, place, text.data(), static_cast<int>(text.size()),
                                 SQLITE_TRANSIENT);
    }
    int operator()(const key& id) const
    {
        const auto bytes = bytes_of_key(id);
        return sqlite3_bind_blob(to, place, bytes.data(), static_cast<int>(bytes.size()),
                                 SQLITE_TRANSIENT);
    }
};

[[noreturn]] void fail(sqlite3* by, std::string_view part)
{
    detail::invalid("sqlite: cannot make " + std::string(part) + ": " + sqlite3_errmsg(by));
}

}  // namespace

query::query(sqlite3* by, const char* sql) noexcept
    : failed_(sqlite3_prepare_v2(by, sql, -1, &text_, nullptr) != SQLITE_OK)
{
}

query::~query() { sqlite3_finalize(text_); }

bool query::run(std::initializer_list<value> values) noexcept
{
    if (failed_) return false;
    sqlite3_reset(text_);
    int place = 0;
    for (const auto& one : values)
        failed_ = std::visit(bind{text_, ++place}, one) != SQLITE_OK || failed_;
    const int code = failed_ ? SQLITE_ERROR : sqlite3_step(text_);
    failed_        = code != SQLITE_ROW && code != SQLITE_DONE;
    // What yields no row is over, and holds no lock of its own any longer.
    if (code != SQLITE_ROW) sqlite3_reset(text_);
    return code == SQLITE_ROW;
}

std::int64_t query::number(int column) const noexcept
{
    return sqlite3_column_int64(text_, column);
}

std::string query::text(int column) const
{
    const auto* const bytes = reinterpret_cast<const char*>(sqlite3_column_text(text_, column));
    return {bytes ? bytes : "", static_cast<std::size_t>(sqlite3_column_bytes(text_, column))};
}

bool did(sqlite3* by, const char* sql, std::initializer_list<value> values) noexcept
{
    query one(by, sql);
    one.run(values);
    return !one.failed();
}

bool in_transaction(sqlite3* by) noexcept { return sqlite3_get_autocommit(by) == 0; }

std::int64_t changes(sqlite3* by) noexcept { return sqlite3_changes(by); }

void settle(sqlite3* by, std::string_view part, const char* text)
{
    {
        query known(by, "SELECT value FROM weir_meta WHERE name = ?1");
        if (known.run({part})) {
            if (known.number(0) == 1) return;
            detail::invalid("sqlite: " + std::string(part) + " has version " + known.text(0) +
                            "; this program knows 1");
        }
    }
    if (in_transaction(by))
        detail::invalid("sqlite: " + std::string(part) + " is made outside of a transaction");
    if (sqlite3_exec(by, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) != SQLITE_OK) fail(by, part);
    if (sqlite3_exec(by, text, nullptr, nullptr, nullptr) != SQLITE_OK ||
        sqlite3_exec(by, "COMMIT", nullptr, nullptr, nullptr) != SQLITE_OK) {
        const std::string why = sqlite3_errmsg(by);
        sqlite3_exec(by, "ROLLBACK", nullptr, nullptr, nullptr);
        detail::invalid("sqlite: cannot make " + std::string(part) + ": " + why);
    }
}

}  // namespace weir::sqlite::within
