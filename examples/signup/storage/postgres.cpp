// SPDX-License-Identifier: BSL-1.0

// A server that the processes of many hosts share. Nothing of a session is used that a transaction
// does not end with, so that a pooler may stand between.

#include "storage/connection.hpp"

#include "weir/postgres/calendar.hpp"
#include "weir/postgres/spent_tokens.hpp"

#include <algorithm>
#include <utility>

#include <poll.h>

#include <libpq-fe.h>

namespace signup {

namespace {

/// libpq's messages name host, user and database, and no password.
std::string one_line(std::string text)
{
    while (!text.empty() && text.back() == '\n') text.pop_back();
    std::ranges::replace(text, '\n', ' ');
    return text;
}

[[noreturn]] void fail(PGconn* on, const std::string& doing)
{
    throw storage_error(doing + ": " + one_line(PQerrorMessage(on)));
}

struct finish {
    void operator()(PGconn* db) const noexcept { PQfinish(db); }
};
struct clear {
    void operator()(PGresult* made) const noexcept { PQclear(made); }
};
using session = std::unique_ptr<PGconn, finish>;
using answer  = std::unique_ptr<PGresult, clear>;

/// A server that is gone is noticed within seconds; SIGNUP_DATABASE may say otherwise.
session connected(const std::string& conninfo)
{
    constexpr const char* names[] = {"fallback_application_name", "connect_timeout",
                                     "tcp_user_timeout",          "dbname",
                                     "client_encoding",           nullptr};
    const char* const values[]    = {"weir-signup", "5", "5000", conninfo.c_str(), "UTF8", nullptr};
    session           made(PQconnectdbParams(names, values, 1));
    if (!made || PQstatus(made.get()) != CONNECTION_OK) fail(made.get(), "cannot connect");
    PQsetNoticeProcessor(
        made.get(), [](void*, const char*) {}, nullptr);
    const auto* const encoding = PQparameterStatus(made.get(), "server_encoding");
    if (encoding == nullptr || std::string_view(encoding) != "UTF8")
        throw storage_error("the database is not in UTF8");
    return made;
}

void execute(PGconn* on, const char* sql)
{
    const answer said(PQexec(on, sql));
    const auto   status = PQresultStatus(said.get());
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) fail(on, sql);
}

/// What the connections of a process share.
struct shared {
    explicit shared(const settings& chosen)
        : conninfo(chosen.database), setup(connected(conninfo)),
          mails(setup.get(), "signup.mails", chosen.caps),
          spent(setup.get(), {.most = chosen.spent_tokens})
    {
    }

    std::string                  conninfo;
    session                      setup;
    weir::postgres::calendar     mails;
    weir::postgres::spent_tokens spent;
};

class server_connection final : public connection {
public:
    explicit server_connection(shared& with) : with_(with), db_(connected(with.conninfo)) {}

    /// Between two statements the server has nothing to say but that it ends.
    [[nodiscard]] bool usable() const noexcept override
    {
        pollfd ready{.fd = PQsocket(db_.get()), .events = POLLIN, .revents = 0};
        return ::poll(&ready, 1, 0) == 0;
    }

    weir::instant now() override
    {
        const auto said =
            run("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint", {});
        return weir::instant(std::chrono::microseconds(said.at(0).integer(0)));
    }
    rows run(const std::string& sql, std::initializer_list<value> values) override;

    /// No statement of it waits for long, and a server that lost us ends it.
    void begin() override
    {
        execute(db_.get(), "BEGIN; SET LOCAL statement_timeout = 5000;"
                           " SET LOCAL idle_in_transaction_session_timeout = 10000");
    }
    /// COMMIT of a transaction that failed says ROLLBACK and is no error.
    void commit() override
    {
        const answer said(PQexec(db_.get(), "COMMIT"));
        if (PQresultStatus(said.get()) != PGRES_COMMAND_OK ||
            std::string_view(PQcmdStatus(said.get())) != "COMMIT")
            fail(db_.get(), "COMMIT");
    }
    void rollback() override { execute(db_.get(), "ROLLBACK"); }

    /// By the server's clock, as everything here.
    weir::placement place(weir::instant at) override { return with_.mails.place(db_.get(), at); }
    weir::token_use spend(const weir::key& token, weir::instant expires, weir::instant at) override
    {
        return with_.spent.spend(db_.get(), token, expires, at);
    }
    void one_at_a_time() override
    {
        execute(db_.get(), "SELECT pg_advisory_xact_lock(hashtext('weir-signup'), 1)");
    }
    [[nodiscard]] std::string_view skipping_locked() const noexcept override
    {
        return " FOR UPDATE SKIP LOCKED";
    }
    void sweep(weir::instant at) override
    {
        if (!with_.mails.sweep(db_.get(), at)) fail(db_.get(), "sweep");
    }

private:
    shared& with_;
    session db_;
};

rows server_connection::run(const std::string& sql, std::initializer_list<value> values)
{
    std::vector<std::string> texts;
    for (const auto& each : values) {
        const auto* number = std::get_if<std::int64_t>(&each);
        texts.push_back(number != nullptr ? std::to_string(*number)
                                          : std::string(std::get<std::string_view>(each)));
    }
    std::vector<const char*> borrowed;
    for (const auto& each : texts) borrowed.push_back(each.c_str());
    const answer said(PQexecParams(db_.get(), sql.c_str(), static_cast<int>(borrowed.size()),
                                   nullptr, borrowed.data(), nullptr, nullptr, 0));
    const auto   status = PQresultStatus(said.get());
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) fail(db_.get(), sql);

    rows found(static_cast<std::size_t>(PQntuples(said.get())));
    for (int line = 0; line < PQntuples(said.get()); ++line)
        for (int column = 0; column < PQnfields(said.get()); ++column) {
            auto& cells = found[static_cast<std::size_t>(line)].cells;
            if (PQgetisnull(said.get(), line, column) != 0) cells.emplace_back();
            else cells.emplace_back(PQgetvalue(said.get(), line, column));
        }
    return found;
}

class server_storage final : public storage {
public:
    explicit server_storage(const settings& chosen) : shared_(chosen)
    {
        const auto on = open();
        on->begin();
        on->one_at_a_time();  // or two that make a table at once would clash
        for (const auto* table : tables()) on->run(table, {});
        on->commit();
    }

    std::unique_ptr<connection> open() override
    {
        return std::make_unique<server_connection>(shared_);
    }

private:
    shared shared_;
};

}  // namespace

std::unique_ptr<storage> postgres_storage(const settings& chosen)
{
    return std::make_unique<server_storage>(chosen);
}

}  // namespace signup
