// SPDX-License-Identifier: BSL-1.0

#include "weir/postgres/spent_tokens.hpp"

#include <libpq-fe.h>

#include <utility>

#include "weir/postgres/texts.hpp"
#include "weir/postgres/within.hpp"

namespace weir::postgres {
namespace {

std::string ticks(instant at) { return std::to_string(at.time_since_epoch().count()); }

}  // namespace

spent_tokens::spent_tokens(pg_conn* by, spent_tokens_options options)
    : most_(options.most), schema_(std::move(options.schema))
{
    detail::check({.most = most_});
    within::settle(by, schema_, "spent_tokens", texts::spent_tokens, options.make_schema);
}

token_use spent_tokens::spend(pg_conn* within, const key& id, instant expires, instant at)
{
    if (!within::in_transaction(within)) return token_use::failed;
    const auto part   = detail::part_of(id, most_);
    const auto cutoff = saturating_add(at, -detail::token_grace);
    const auto made =
        within::ask(within, "SELECT " + schema_ + ".spend_token($1, $2, $3, $4, $5, $6)",
                    {within::uuid(id), ticks(expires), ticks(cutoff), within::uuid(part.low),
                     within::uuid(part.high), std::to_string(part.most)});
    if (!made) return token_use::failed;
    switch (*PQgetvalue(made.get(), 0, 0)) {
    case '0':
        return token_use::first;
    case '1':
        return token_use::again;
    default:
        return token_use::full;
    }
}

}  // namespace weir::postgres
