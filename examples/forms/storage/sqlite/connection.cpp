// SPDX-License-Identifier: BSL-1.0

#include "storage/sqlite/connection.hpp"

#include <sqlite3.h>

namespace forms::sqlite {

namespace {

[[noreturn]] void fail(sqlite3* on, std::string_view doing)
{
    throw storage_error(std::string(doing) + ": " + sqlite3_errmsg(on));
}

}  // namespace

statement::~statement()
{
    sqlite3_reset(prepared_);
    sqlite3_clear_bindings(prepared_);
}

void statement::bind(int index, std::int64_t value)
{
    if (sqlite3_bind_int64(prepared_, index, value) != SQLITE_OK) fail(on_, "bind");
}

void statement::bind(int index, std::string_view text)
{
    // An empty view may have no address, which SQLite would take for NULL.
    const auto* bytes = text.empty() ? "" : text.data();
    if (sqlite3_bind_text64(prepared_, index, bytes, text.size(), SQLITE_STATIC, SQLITE_UTF8) !=
        SQLITE_OK)
        fail(on_, "bind");
}

void statement::bind(int index, const std::optional<std::string>& text)
{
    if (text) bind(index, std::string_view(*text));
    else if (sqlite3_bind_null(prepared_, index) != SQLITE_OK) fail(on_, "bind");
}

bool statement::next()
{
    const int step = sqlite3_step(prepared_);
    if (step != SQLITE_ROW && step != SQLITE_DONE) fail(on_, "step");
    return step == SQLITE_ROW;
}

std::int64_t statement::integer(int column) const
{
    return sqlite3_column_int64(prepared_, column);
}

std::string_view statement::text(int column) const
{
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(prepared_, column));
    const auto  size  = static_cast<std::size_t>(sqlite3_column_bytes(prepared_, column));
    return bytes == nullptr ? std::string_view() : std::string_view(bytes, size);
}

connection::connection(const std::string& path)
{
    sqlite3*   opened = nullptr;
    const auto flags  = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    const int  result = sqlite3_open_v2(path.c_str(), &opened, flags, nullptr);
    handle_.reset(opened);
    if (result != SQLITE_OK) fail(opened, "cannot open " + path);

    // Other processes on this file write in turns; five seconds is more than any turn takes.
    sqlite3_busy_timeout(opened, 5000);
    execute("PRAGMA journal_mode = WAL");
    execute("PRAGMA synchronous = FULL");
}

void connection::execute(const char* sql)
{
    if (sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK)
        fail(handle_.get(), sql);
}

std::int64_t connection::changed() const
{
    return sqlite3_changes64(handle_.get());
}

sqlite3_stmt* connection::prepared(const char* sql)
{
    auto& found = prepared_[sql];
    if (!found) {
        sqlite3_stmt* made = nullptr;
        if (sqlite3_prepare_v3(handle_.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &made, nullptr) !=
            SQLITE_OK)
            fail(handle_.get(), sql);
        found.reset(made);
    }
    return found.get();
}

void connection::close::operator()(sqlite3* handle) const noexcept
{
    sqlite3_close_v2(handle);  // waits for statements, which end with the map that holds them
}

void connection::finalize::operator()(sqlite3_stmt* prepared) const noexcept
{
    sqlite3_finalize(prepared);
}

}  // namespace forms::sqlite
