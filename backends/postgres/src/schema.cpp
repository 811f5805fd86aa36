// SPDX-License-Identifier: BSL-1.0

// What a connection looks at, and makes if it is missing, before it is used.

#include <libpq-fe.h>

#include <string>
#include <string_view>

#include "weir/invalid.hpp"
#include "weir/postgres/connection.hpp"
#include "weir/postgres/texts.hpp"

namespace weir::postgres {
namespace {

constexpr std::string_view version = "1";

bool is_part_of_a_word(char c) noexcept
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::string_view state_of(const PGresult* made) noexcept
{
    const char* const code = PQresultErrorField(made, PG_DIAG_SQLSTATE);
    return code ? code : "";
}

}  // namespace

std::string renamed(std::string text, const std::string& schema)
{
    constexpr std::string_view word = "weir";
    for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at)) {
        const bool begins = at == 0 || !is_part_of_a_word(text[at - 1]);
        const auto end    = at + word.size();
        const bool ends   = end == text.size() || !is_part_of_a_word(text[end]);
        if (begins && ends) text.replace(at, word.size(), schema);
        at += begins && ends ? schema.size() : word.size();
    }
    return text;
}

std::string schema_text(const place& where)
{
    auto text = std::string(texts::schema);
    if (where.survives == durability::unlogged) {
        constexpr std::string_view logged = "CREATE TABLE IF NOT EXISTS weir.counters";
        text.replace(text.find(logged), logged.size(),
                     "CREATE UNLOGGED TABLE IF NOT EXISTS weir.counters");
    }
    return renamed(std::move(text), where.schema);
}

/// The first cell of an answer; empty if there is none, or no such table.
std::string connection::look_up(const std::string& sql, time_point until)
{
    const auto made  = run(sql, until);
    const auto state = state_of(made.get());
    if (state == "42P01" || state == "3F000") return "";
    if (PQresultStatus(made.get()) != PGRES_TUPLES_OK) fail("cannot read the schema", made.get());
    return PQntuples(made.get()) > 0 ? PQgetvalue(made.get(), 0, 0) : "";
}

void connection::settle_schema(time_point until)
{
    const auto look = [&] {
        return look_up("SELECT value FROM " + place_->schema + ".meta WHERE name = 'version'",
                       until);
    };
    auto found = look();
    if (found.empty()) make_schema(until), found = look();
    if (found != version)
        detail::invalid("weir::postgres: the schema \"" + place_->schema + "\" has version \"" +
                        found + "\"; this program knows " + std::string(version));
}

/// A schema of this version that was made before there were lockouts lacks their functions.
void connection::settle_functions(time_point until)
{
    const auto look = [&] {
        return look_up("SELECT to_regproc('" + place_->schema + ".marked')::text", until);
    };
    if (!look().empty()) return;
    make_schema(until);
    if (look().empty()) fail("the schema lacks the function marked");
}

void connection::make_schema(time_point until)
{
    const auto by_hand = "; let its owner run weir-postgres.sql (docs/postgresql.md)";
    if (!place_->makes)
        detail::invalid("weir::postgres: there is no schema \"" + place_->schema +
                        "\", or not all of it, and make_schema is off" + by_hand);
    const auto made = run(schema_text(*place_), until);
    if (state_of(made.get()) == "42501")
        detail::invalid("weir::postgres: this role may not make the schema \"" + place_->schema +
                        "\"" + by_hand);
    if (PQresultStatus(made.get()) != PGRES_COMMAND_OK) fail("cannot make the schema", made.get());
}

/// What is kept is a digest. A role that may not write it is left alone.
void connection::settle_secret(time_point until)
{
    const auto mine  = remote::hex(place_->fingerprint);
    const auto table = place_->schema + ".meta";
    const auto known = look_up("SELECT value FROM " + table + " WHERE name = 'secret'", until);
    secret_changed_  = !known.empty() && known != mine;
    if (known == mine) return;
    run("INSERT INTO " + table + " AS m (name, value) VALUES ('secret', '" + mine +
            "') ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        until);
}

}  // namespace weir::postgres
