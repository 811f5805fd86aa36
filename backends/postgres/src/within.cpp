// SPDX-License-Identifier: BSL-1.0

#include "weir/postgres/within.hpp"

#include <libpq-fe.h>

#include <algorithm>

#include "weir/invalid.hpp"
#include "weir/postgres/connection.hpp"

namespace weir::postgres::within {
namespace {

bool is_a_name(std::string_view schema) noexcept
{
    const auto fits = [](char c) {
        return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
    };
    return !schema.empty() && schema.size() < 64 && (schema[0] < '0' || schema[0] > '9') &&
           std::ranges::all_of(schema, fits);
}

/// libpq's messages name host, user and database, and never a password.
[[noreturn]] void fail(const pg_conn* by, const std::string& part)
{
    std::string why = PQerrorMessage(by);
    while (!why.empty() && why.back() == '\n') why.pop_back();
    throw unreachable("weir::postgres: cannot look at " + part + ": " + why);
}

void check_server(pg_conn* by, const std::string& schema, const std::string& part)
{
    if (!is_a_name(schema))
        detail::invalid("weir::postgres: schema is \"" + schema +
                        "\"; lower-case letters, digits and _ are allowed, 63 at most");
    if (PQstatus(by) != CONNECTION_OK) fail(by, part);
    if (PQtransactionStatus(by) != PQTRANS_IDLE)
        detail::invalid("weir::postgres: " + part + " is made outside of a transaction");
    if (PQserverVersion(by) < 140000)
        detail::invalid("weir::postgres: " + part +
                        " needs PostgreSQL 14; this server has version " +
                        std::to_string(PQserverVersion(by) / 10000));
    const auto standby = ask(by, "SELECT pg_is_in_recovery()", {});
    if (!standby) fail(by, part);
    if (*PQgetvalue(standby.get(), 0, 0) == 't')
        detail::invalid("weir::postgres: " + part + " needs a server that can be written");
}

/// Empty if it is not there.
std::string version_of(pg_conn* by, const std::string& schema, const std::string& part)
{
    const auto there = ask(by, "SELECT to_regclass($1) IS NOT NULL", {schema + ".meta"});
    if (!there) fail(by, part);
    if (*PQgetvalue(there.get(), 0, 0) != 't') return "";
    const auto found = ask(by, "SELECT value FROM " + schema + ".meta WHERE name = $1", {part});
    if (!found) fail(by, part);
    return PQntuples(found.get()) > 0 ? PQgetvalue(found.get(), 0, 0) : "";
}

}  // namespace

void clear::operator()(pg_result* made) const noexcept { PQclear(made); }

result ask(pg_conn* by, const std::string& sql, const std::vector<std::string>& parameters)
{
    std::vector<const char*> values;
    for (const auto& one : parameters) values.push_back(one.c_str());
    result made(PQexecParams(by, sql.c_str(), static_cast<int>(values.size()), nullptr,
                             values.data(), nullptr, nullptr, 0));
    return PQresultStatus(made.get()) == PGRES_TUPLES_OK ? std::move(made) : nullptr;
}

bool in_transaction(const pg_conn* by) noexcept
{
    return PQtransactionStatus(by) == PQTRANS_INTRANS;
}

void settle(pg_conn* by, const std::string& schema, const std::string& part, std::string_view text,
            bool makes)
{
    check_server(by, schema, part);
    auto found = version_of(by, schema, part);
    if (found.empty() && !makes)
        detail::invalid("weir::postgres: there is no " + part + " in the schema \"" + schema +
                        "\" and make_schema is off; let its owner run weir-postgres-" + part +
                        ".sql");
    if (found.empty()) {
        const result made(PQexec(by, renamed(std::string(text), schema).c_str()));
        if (PQresultStatus(made.get()) != PGRES_COMMAND_OK) {
            const std::string why = PQerrorMessage(by);
            result(PQexec(by, "ROLLBACK"));
            throw unreachable("weir::postgres: cannot make " + part + ": " + why);
        }
        found = version_of(by, schema, part);
    }
    if (found != "1")
        detail::invalid("weir::postgres: " + part + " in the schema \"" + schema +
                        "\" has version \"" + found + "\"; this program knows 1");
}

std::string uuid(const key& of)
{
    constexpr char digits[] = "0123456789abcdef";
    std::string    text;
    for (const auto word : {of.high, of.low})
        for (int shift = 60; shift >= 0; shift -= 4) {
            text += digits[word >> shift & 15];
            if (text.size() == 8 || text.size() == 13 || text.size() == 18 || text.size() == 23)
                text += '-';
        }
    return text;
}

}  // namespace weir::postgres::within
