// SPDX-License-Identifier: BSL-1.0

#include "weir/sqlite/spent_tokens.hpp"

#include <cstdint>

#include "weir/sqlite/texts.hpp"
#include "weir/sqlite/within.hpp"

namespace weir::sqlite {
namespace {

std::int64_t ticks(instant at) { return at.time_since_epoch().count(); }

}  // namespace

spent_tokens::spent_tokens(sqlite3* by, const spent_token_options& options) : most_(options.most)
{
    detail::check(options);
    within::settle(by, "spent_tokens", texts::spent_schema);
}

token_use spent_tokens::spend(sqlite3* within, const key& id, instant expires, instant at)
{
    if (!within::in_transaction(within)) return token_use::failed;
    const auto part   = detail::part_of(id, most_);
    const auto cutoff = ticks(saturating_add(at, -detail::token_grace));
    if (!within::did(within, texts::spent_forget, {part.low, part.high, cutoff}) ||
        !within::did(within, texts::spent_insert, {id, ticks(expires)}))
        return token_use::failed;
    if (within::changes(within) == 0) return token_use::again;
    within::query count(within, texts::spent_count);
    if (!count.run({part.low, part.high})) return token_use::failed;
    if (count.number(0) <= static_cast<std::int64_t>(part.most)) return token_use::first;
    return within::did(within, texts::spent_remove, {id}) ? token_use::full : token_use::failed;
}

}  // namespace weir::sqlite
