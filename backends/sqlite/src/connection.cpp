// SPDX-License-Identifier: BSL-1.0

#include "weir/sqlite/connection.hpp"

#include <sqlite3.h>

#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>

#include "weir/invalid.hpp"
#include "weir/sqlite/texts.hpp"

namespace weir::sqlite {
namespace {

constexpr std::int64_t layout_version = 1;

using key_bytes = std::array<unsigned char, 16>;

/// The highest byte first, so that rows lie in the order of keys.
key_bytes bytes_of(const key& who) noexcept
{
    key_bytes bytes;
    for (std::size_t i = 0; i < 8; ++i) {
        bytes[i]     = static_cast<unsigned char>(who.high >> (56 - 8 * i));
        bytes[i + 8] = static_cast<unsigned char>(who.low >> (56 - 8 * i));
    }
    return bytes;
}

key key_of(const void* blob) noexcept
{
    const auto* const bytes = static_cast<const unsigned char*>(blob);
    key               who;
    for (std::size_t i = 0; i < 8; ++i) {
        who.high = who.high << 8 | bytes[i];
        who.low  = who.low << 8 | bytes[i + 8];
    }
    return who;
}

const char* name_of(verb act) noexcept
{
    switch (act) {
        case verb::spend: return "spend";
        case verb::charge: return "charge";
        case verb::give_back: return "give_back";
        case verb::peek:
        case verb::forget: break;
    }
    return "";
}

void bind_key(sqlite3_stmt* to, int place, const key_bytes& bytes) noexcept
{
    sqlite3_bind_blob(to, place, bytes.data(), static_cast<int>(bytes.size()), SQLITE_STATIC);
}

/// A statement that is put back when its use ends, so that no lock outlives it.
class in_use {
public:
    explicit in_use(sqlite3_stmt* query) noexcept : query_(query) {}
    ~in_use() { sqlite3_reset(query_); }
    in_use(const in_use&)            = delete;
    in_use& operator=(const in_use&) = delete;

    /// 0 where a row came or the statement is done; `row` tells which.
    int step(bool& row) noexcept
    {
        const int code = sqlite3_step(query_);
        row            = code == SQLITE_ROW;
        return row || code == SQLITE_DONE ? SQLITE_OK : code;
    }

private:
    sqlite3_stmt* query_;
};

int run_once(sqlite3_stmt* query) noexcept
{
    in_use use(query);
    bool   row = false;
    return use.step(row);
}

void read_state(sqlite3_stmt* row, int from, outcome& said) noexcept
{
    said.found = sqlite3_column_type(row, from) == SQLITE_INTEGER;
    for (int i = 0; said.found && i < 3; ++i)
        said.after[static_cast<std::size_t>(i)] = sqlite3_column_int64(row, from + i);
}

}  // namespace

void connection::close::operator()(sqlite3* db) const noexcept
{
    sqlite3_close_v2(db);
}

void connection::finalize::operator()(sqlite3_stmt* text) const noexcept
{
    sqlite3_finalize(text);
}

connection::connection(const place& where) : path_(where.path)
{
    if (path_.empty() || path_.find('\0') != std::string::npos)
        detail::invalid(
            "sqlite: path is empty or holds a zero byte; the name of a file is allowed");
    sqlite3*   opened = nullptr;
    const auto flags  = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    const int  code   = sqlite3_open_v2(path_.c_str(), &opened, flags, nullptr);
    db_.reset(opened);
    if (code != SQLITE_OK) fail("cannot be opened");
    if (sqlite3_db_readonly(db_.get(), "main") == 1) fail("cannot be written");
    sqlite3_extended_result_codes(db_.get(), 1);

    const auto until = std::chrono::steady_clock::now() + where.patience;
    for (int busy = set_up(where); busy != SQLITE_OK; busy = set_up(where)) {
        if ((busy & 0xff) != SQLITE_BUSY) fail("cannot be used");
        if (std::chrono::steady_clock::now() >= until) fail("is kept locked by another process");
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    prepare_all();
}

void connection::fail(const std::string& what) const
{
    const int  code  = sqlite3_errcode(db_.get());
    const bool known = code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE;
    detail::invalid("sqlite: \"" + path_ + "\" " + what +
                    (known ? std::string(": ") + sqlite3_errmsg(db_.get()) : ""));
}

int connection::execute(const char* sql) noexcept
{
    return sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr);
}

int connection::prepare(const char* sql, statement& made) noexcept
{
    sqlite3_stmt* prepared = nullptr;
    const int     code =
        sqlite3_prepare_v3(db_.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &prepared, nullptr);
    made.reset(prepared);
    return code;
}

/// Changing to a write-ahead log needs the file alone for a moment; SQLite says SQLITE_BUSY then
/// whatever its busy handler is, so everything here may be tried again.
int connection::set_up(const place& where)
{
    statement mode;
    if (const int code = prepare("PRAGMA journal_mode = WAL", mode)) return code;
    if (const int code = sqlite3_step(mode.get()); code != SQLITE_ROW) return code;
    const auto* const is = reinterpret_cast<const char*>(sqlite3_column_text(mode.get(), 0));
    if (is == nullptr || std::string_view(is) != "wal") fail("cannot hold a write-ahead log");
    mode.reset();
    execute(where.survives == durability::machine ? "PRAGMA synchronous = FULL"
                                                  : "PRAGMA synchronous = NORMAL");

    bool settled = false;
    if (const int code = check_meta(where, settled)) return code;
    return settled ? SQLITE_OK : settle_layout(where);
}

/// Writes, so only where there is something to write: a file that is in use can be opened while
/// somebody else has the right to write.
int connection::settle_layout(const place& where)
{
    if (const int code = execute("BEGIN IMMEDIATE")) return code;
    int  code    = execute(texts::meta);
    bool settled = false;
    if (code == SQLITE_OK)
        code = check_meta(where, settled);  // another process may have been first
    if (code == SQLITE_OK && !settled) {
        code = execute(texts::schema);
        if (code == SQLITE_OK) code = record_secret(where.fingerprint);
    }
    if (code == SQLITE_OK) code = execute("COMMIT");
    if (code != SQLITE_OK && in_transaction()) execute("ROLLBACK");
    return code;
}

/// `settled`: the layout is ours and the secret is the one that is recorded.
int connection::check_meta(const place& where, bool& settled)
{
    statement query;
    settled = false;
    if (const int code = prepare("SELECT (SELECT value FROM weir_meta WHERE name = 'version'),"
                                 " (SELECT value FROM weir_meta WHERE name = 'secret')", query))
        return code == SQLITE_ERROR ? SQLITE_OK : code;  // no such table yet
    if (const int code = sqlite3_step(query.get()); code != SQLITE_ROW) return code;
    if (sqlite3_column_type(query.get(), 0) == SQLITE_NULL) return SQLITE_OK;
    const auto version = sqlite3_column_int64(query.get(), 0);
    if (version != layout_version)
        detail::invalid("sqlite: \"" + path_ + "\" has layout " + std::to_string(version) +
                        "; this version of weir"
                        " knows layout " +
                        std::to_string(layout_version));
    const auto& secret = where.fingerprint;
    settled = sqlite3_column_bytes(query.get(), 1) == static_cast<int>(secret.size()) &&
              std::memcmp(sqlite3_column_blob(query.get(), 1), secret.data(), secret.size()) == 0;
    if (!settled) secret_changed_ = true;
    return SQLITE_OK;
}

int connection::record_secret(const remote::hash_bytes& fingerprint)
{
    statement write;
    if (const int code =
            prepare("INSERT OR REPLACE INTO weir_meta (name, value) VALUES ('secret', ?1)", write))
        return code;
    sqlite3_bind_blob(write.get(), 1, fingerprint.data(), static_cast<int>(fingerprint.size()),
                      SQLITE_STATIC);
    return run_once(write.get());
}

void connection::prepare_all()
{
    const std::pair<const char*, statement*> all[] = {
        {"BEGIN", &begin_looking_},     {"BEGIN IMMEDIATE", &begin_changing_},
        {"COMMIT", &commit_},           {"ROLLBACK", &roll_back_},
        {texts::look, &look_},          {texts::keep, &keep_},
        {texts::forget, &forget_},      {texts::sweep, &sweep_},
        {texts::sweep_end, &sweep_end_}};
    for (const auto& [sql, made] : all)
        if (prepare(sql, *made) != SQLITE_OK) fail("has no table of counters");
}

bool connection::moved() const noexcept
{
    int is = 0;
    return sqlite3_file_control(db_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &is) == SQLITE_OK &&
           is != 0;
}

int connection::begin_looking() noexcept
{
    return run_once(begin_looking_.get());
}

int connection::begin_changing() noexcept
{
    return run_once(begin_changing_.get());
}

int connection::commit() noexcept
{
    return run_once(commit_.get());
}

void connection::roll_back() noexcept
{
    if (in_transaction()) run_once(roll_back_.get());
}

bool connection::in_transaction() const noexcept
{
    return sqlite3_get_autocommit(db_.get()) == 0;
}

int connection::run(const step& asked, outcome& said) noexcept
{
    int code = SQLITE_OK;
    if (asked.verb == verb::peek) code = look(asked, said);
    else if (asked.verb == verb::forget) code = forget(asked);
    else code = spend(asked, said);
    said.answered = code == SQLITE_OK;
    return code;
}

int connection::look(const step& asked, outcome& said) noexcept
{
    const auto bytes = bytes_of(asked.who);
    in_use     use(look_.get());
    bool       row = false;
    bind_key(look_.get(), 1, bytes);
    const int code = use.step(row);
    if (row) read_state(look_.get(), 0, said);
    return code;
}

int connection::forget(const step& asked) noexcept
{
    const auto bytes = bytes_of(asked.who);
    bind_key(forget_.get(), 1, bytes);
    return run_once(forget_.get());
}

int connection::spend(const step& asked, outcome& said) noexcept
{
    auto* const by = spending_by(*asked.text);
    if (by == nullptr) return SQLITE_ERROR;
    auto* const query = by->query.get();
    const auto  bytes = bytes_of(asked.who);
    in_use      use(query);
    bool        row = false;
    bind_key(query, by->places[0], bytes);
    sqlite3_bind_text(query, by->places[1], name_of(asked.verb), -1, SQLITE_STATIC);
    for (std::size_t i = 2; i < by->places.size(); ++i)
        sqlite3_bind_int64(query, by->places[i], asked.numbers[i - 2]);

    if (const int code = use.step(row); code != SQLITE_OK || !row)
        return code != SQLITE_OK ? code : SQLITE_ERROR;
    said.granted = static_cast<std::uint64_t>(sqlite3_column_int64(query, 0));
    read_state(query, 2, said);
    return sqlite3_column_int(query, 1) != 0 ? keep(asked.who, query) : SQLITE_OK;
}

/// Writes the state that stands in the columns 2 … 5 of `made`.
int connection::keep(const key& who, sqlite3_stmt* made) noexcept
{
    const auto bytes = bytes_of(who);
    bind_key(keep_.get(), 1, bytes);
    for (int i = 2; i <= 5; ++i) sqlite3_bind_value(keep_.get(), i, sqlite3_column_value(made, i));
    return run_once(keep_.get());
}

/// The prepared text; null if SQLite does not take it or it lacks a parameter.
connection::spend_statement* connection::spending_by(const spend_text& text)
{
    for (auto& one : spends_)
        if (one.text == &text) return &one;
    spend_statement made{.text = &text, .query = {}, .places = {}};
    if (prepare(text.sql, made.query) != SQLITE_OK) return nullptr;
    const auto place = [&](const char* name) {
        made.places.push_back(sqlite3_bind_parameter_index(made.query.get(), name));
        return made.places.back() != 0;
    };
    bool all = place(":key") && place(":verb") && text.names.size() <= numbers{}.size();
    for (const auto* const name : text.names) all = all && place(name);
    if (!all) return nullptr;
    return &spends_.emplace_back(std::move(made));
}

int connection::sweep(key& from, std::size_t rows, instant cutoff) noexcept
{
    const auto after = bytes_of(from);
    auto       last  = bytes_of({~std::uint64_t{0}, ~std::uint64_t{0}});
    auto       next  = key{};
    {
        in_use use(sweep_end_.get());
        bool   row = false;
        bind_key(sweep_end_.get(), 1, after);
        sqlite3_bind_int64(sweep_end_.get(), 2, static_cast<std::int64_t>(rows) - 1);
        if (const int code = use.step(row)) return code;
        if (row) next = key_of(sqlite3_column_blob(sweep_end_.get(), 0)), last = bytes_of(next);
    }
    bind_key(sweep_.get(), 1, after);
    bind_key(sweep_.get(), 2, last);
    sqlite3_bind_int64(sweep_.get(), 3, cutoff.time_since_epoch().count());
    from = next;
    return run_once(sweep_.get());
}

int connection::marked(std::int64_t mark, std::vector<remote::seen_row>& rows)
{
    statement query;
    if (const int code = prepare(texts::marked, query)) return code;
    sqlite3_bind_int64(query.get(), 1, mark);
    int code = sqlite3_step(query.get());
    for (; code == SQLITE_ROW; code = sqlite3_step(query.get())) {
        auto& row = rows.emplace_back();
        row.who   = key_of(sqlite3_column_blob(query.get(), 0));
        for (int i = 0; i < 3; ++i)
            row.words[static_cast<std::size_t>(i)] = sqlite3_column_int64(query.get(), i + 1);
    }
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

}  // namespace weir::sqlite
