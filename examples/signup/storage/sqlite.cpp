// SPDX-License-Identifier: BSL-1.0

// A file that the processes of one host share.

#include "storage/connection.hpp"

#include "weir/sqlite/calendar.hpp"
#include "weir/sqlite/spent_tokens.hpp"
#include "weir/sqlite/store.hpp"

#include <map>
#include <mutex>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <sqlite3.h>

namespace signup {

namespace {

[[noreturn]] void fail(sqlite3* on, const std::string& doing)
{
    throw storage_error(doing + ": " + sqlite3_errmsg(on));
}

struct close {
    void operator()(sqlite3* handle) const noexcept { sqlite3_close_v2(handle); }
};
struct finalize {
    void operator()(sqlite3_stmt* prepared) const noexcept { sqlite3_finalize(prepared); }
};
using database = std::unique_ptr<sqlite3, close>;

database opened(const std::string& path)
{
    sqlite3*   handle = nullptr;
    const auto flags  = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    const int  result = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
    database   made(handle);
    if (result != SQLITE_OK) fail(handle, "cannot open " + path);
    // Other processes on this file write in turns; ten seconds is more than any turn takes.
    sqlite3_busy_timeout(handle, 10'000);
    for (const auto* pragma : {"PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL"})
        if (sqlite3_exec(handle, pragma, nullptr, nullptr, nullptr) != SQLITE_OK)
            fail(handle, pragma);
    return made;
}

/// What the connections of a process share. SQLite lets those who wait for its lock sleep and try
/// again, which starves some; in one process they queue up here.
struct shared {
    explicit shared(const settings& chosen)
        : path(chosen.database), setup(opened(path)),
          mails(setup.get(), "signup.mails", chosen.caps),
          spent(setup.get(), {.most = chosen.spent_tokens})
    {
    }

    std::string                path;
    database                   setup;
    weir::sqlite::calendar     mails;
    weir::sqlite::spent_tokens spent;
    std::mutex                 turn;
};

class file_connection final : public connection {
public:
    explicit file_connection(shared& with) : with_(with), db_(opened(with.path)) {}

    [[nodiscard]] bool usable() const noexcept override { return true; }
    weir::instant      now() override { return weir::sqlite::system_time(); }
    rows               run(const std::string& sql, std::initializer_list<value> values) override;

    void begin() override
    {
        turn_ = std::unique_lock(with_.turn);
        execute("BEGIN IMMEDIATE");
    }
    void commit() override { end("COMMIT"); }
    void rollback() override { end("ROLLBACK"); }

    weir::placement place(weir::instant at) override { return with_.mails.place(db_.get(), at); }
    weir::token_use spend(const weir::key& token, weir::instant expires, weir::instant at) override
    {
        return with_.spent.spend(db_.get(), token, expires, at);
    }
    void                           one_at_a_time() override {}  // BEGIN IMMEDIATE has seen to that
    [[nodiscard]] std::string_view skipping_locked() const noexcept override { return ""; }
    void                           sweep(weir::instant at) override
    {
        if (!with_.mails.sweep(db_.get(), at)) fail(db_.get(), "sweep");
    }

private:
    void          execute(const char* sql);
    void          end(const char* how);
    sqlite3_stmt* prepared(const std::string& sql);
    void          bind(sqlite3_stmt* to, int index, const value& given);

    shared&                                                        with_;
    std::unique_lock<std::mutex>                                   turn_;
    database                                                       db_;
    std::map<std::string, std::unique_ptr<sqlite3_stmt, finalize>> prepared_;
};

void file_connection::execute(const char* sql)
{
    if (sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail(db_.get(), sql);
}

void file_connection::end(const char* how)
{
    execute(how);
    turn_.unlock();
}

sqlite3_stmt* file_connection::prepared(const std::string& sql)
{
    auto& found = prepared_[sql];
    if (!found) {
        sqlite3_stmt* made = nullptr;
        if (sqlite3_prepare_v2(db_.get(), sql.c_str(), -1, &made, nullptr) != SQLITE_OK)
            fail(db_.get(), sql);
        found.reset(made);
    }
    return found.get();
}

/// $n is a name to SQLite, so a statement may use it anywhere, or not at all.
void file_connection::bind(sqlite3_stmt* to, int index, const value& given)
{
    const auto at = sqlite3_bind_parameter_index(to, ("$" + std::to_string(index)).c_str());
    if (at == 0) return;
    int result = SQLITE_OK;
    if (const auto* number = std::get_if<std::int64_t>(&given)) {
        result = sqlite3_bind_int64(to, at, *number);
    } else {
        // An empty view may have no address, which SQLite would take for NULL.
        const auto text = std::get<std::string_view>(given);
        result          = sqlite3_bind_text64(to, at, text.empty() ? "" : text.data(), text.size(),
                                              SQLITE_TRANSIENT, SQLITE_UTF8);
    }
    if (result != SQLITE_OK) fail(db_.get(), "bind");
}

row read_row(sqlite3_stmt* from)
{
    row made;
    for (int column = 0; column < sqlite3_column_count(from); ++column) {
        const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(from, column));
        const auto  size = static_cast<std::size_t>(sqlite3_column_bytes(from, column));
        if (text == nullptr) made.cells.emplace_back();
        else made.cells.emplace_back(std::string(text, size));
    }
    return made;
}

rows file_connection::run(const std::string& sql, std::initializer_list<value> values)
{
    auto* const statement = prepared(sql);
    int         index     = 0;
    for (const auto& each : values) bind(statement, ++index, each);
    rows found;
    int  step = sqlite3_step(statement);
    for (; step == SQLITE_ROW; step = sqlite3_step(statement)) found.push_back(read_row(statement));
    if (step != SQLITE_DONE) fail(db_.get(), sql);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return found;
}

class file_storage final : public storage {
public:
    explicit file_storage(const settings& chosen) : shared_(private_file(chosen))
    {
        for (const auto* table : tables()) open()->run(table, {});
    }

    std::unique_ptr<connection> open() override
    {
        return std::make_unique<file_connection>(shared_);
    }

private:
    /// What people apply with is nobody's business on this host: SQLite gives the files beside it
    /// the mode of this one.
    static const settings& private_file(const settings& chosen)
    {
        const int made = ::open(chosen.database.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (made >= 0) ::close(made);  // else opening it as a database tells why
        return chosen;
    }

    shared shared_;
};

}  // namespace

std::unique_ptr<storage> sqlite_storage(const settings& chosen)
{
    return std::make_unique<file_storage>(chosen);
}

}  // namespace signup
