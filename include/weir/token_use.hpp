// SPDX-License-Identifier: BSL-1.0
#pragma once

// What counts the uses of a form's token, wherever it is kept: only tokens that were used are kept,
// for as long as they could be used again.

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "weir/invalid.hpp"
#include "weir/key.hpp"
#include "weir/time.hpp"

namespace weir {

enum class token_use : std::uint8_t {
    first,   ///< It is used from now on, or from the caller's commit on.
    again,   ///< It was used before.
    full,    ///< There is no room to remember it. Refuse: who forgets lets tokens be used again.
    failed,  ///< The store did not answer: roll the transaction back.
};

struct spent_token_options {
    /// Tokens remembered, all of them younger than the tokens' age limit and an hour. Kept in parts
    /// of some hundred each, found by the token, so that a look at the bound is a look at one part:
    /// the first part to be full refuses, which is somewhat before all of them are.
    std::size_t most = 100'000;
};

// ---------------------------------------------------------------------------------------------

namespace detail {

/// Longer than a token is good for, lest a clock that steps back by less makes it good again.
inline constexpr duration token_grace = std::chrono::hours(1);

/// The tokens from `low` to `high`, which share their first bits, and how many of them may be kept.
struct token_part {
    key         low  = {};
    key         high = {};
    std::size_t most = 0;
};

constexpr token_part part_of(const key& id, std::size_t most) noexcept
{
    constexpr std::size_t about = 512;
    const auto            bits  = std::bit_width(std::max<std::size_t>(most / about, 1)) - 1;
    const auto            rest  = bits == 0 ? ~std::uint64_t{0} : ~std::uint64_t{0} >> bits;
    return {.low  = {id.high & ~rest, 0},
            .high = {id.high | rest, ~std::uint64_t{0}},
            .most = most >> bits};
}

inline void check(const spent_token_options& options)
{
    if (options.most == 0 || options.most > 1'000'000'000)
        invalid("spent_tokens: most is " + std::to_string(options.most) +
                "; 1 to a thousand million are allowed");
}

}  // namespace detail

}  // namespace weir
