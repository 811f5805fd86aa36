// SPDX-License-Identifier: BSL-1.0
#pragma once

// How a policy is run inside SQLite: its text, the numbers that the text takes, and its state as
// the three words of a row. A policy without one does not compile on this store. For a policy of
// your own specialise `spending` as below; sql/spend_*.sql are the texts to learn from.

#include <array>
#include <cstdint>
#include <limits>
#include <span>

#include "weir/key.hpp"
#include "weir/policy.hpp"
#include "weir/policy/fixed_window.hpp"
#include "weir/policy/gcra.hpp"
#include "weir/policy/lockout.hpp"
#include "weir/policy/sliding_window.hpp"
#include "weir/store.hpp"
#include "weir/time.hpp"

namespace weir::sqlite {

/// The most that a count grows to. The sum of two still fits the whole numbers of SQLite, which
/// beyond 63 bits would be REAL.
inline constexpr std::uint64_t most_counted = (std::uint64_t{1} << 62) - 1;

using words   = std::array<std::int64_t, 3>;
using numbers = std::array<std::int64_t, 14>;

/// One query that yields: granted, changed, the three words, recovered_at. It finds the row by
/// `:key` and is told what to do by `:verb`: 'spend', 'charge' or 'give_back'. `names` says what
/// the other parameters are called, in the order of `numbers`. Compared by address.
struct spend_text {
    const char*                  sql   = nullptr;
    std::span<const char* const> names = {};
};

/// What `spending<Policy>` must have, beside the static `text`:
/// `of(question, at)`, the numbers of an ask, and `state_of(words)`. Pure and thread-safe.
template <policy Policy>
struct spending;

/// An ask on its way to the row.
struct step {
    const spend_text* text    = nullptr;
    key               who     = {};
    weir::verb        verb    = weir::verb::peek;
    instant           at      = {};
    sqlite::numbers   numbers = {};
};

/// What came back. `found`: whether there is a row; else the state is untouched.
struct outcome {
    bool          answered = false;
    bool          found    = false;
    std::uint64_t granted  = 0;
    words         after    = {};
};

/// What the row has to do for an ask. A spend that never fits and a give_back too late only look.
template <policy Policy>
[[nodiscard]] constexpr verb needed(const ask<Policy>& question, instant at) noexcept;

/// The numbers of an ask that all policies share. `units` is cost × times; none is more than
/// `most_counted`.
struct quantities {
    std::int64_t cost, times, units;
};
[[nodiscard]] constexpr quantities quantities_of(std::uint64_t cost, std::uint64_t times) noexcept;

template <>
struct spending<fixed_window> {
    static const spend_text    text;
    static numbers             of(const ask<fixed_window>& question, instant at) noexcept;
    static fixed_window::state state_of(const words& row) noexcept;
};

template <>
struct spending<sliding_window> {
    static const spend_text      text;
    static numbers               of(const ask<sliding_window>& question, instant at) noexcept;
    static sliding_window::state state_of(const words& row) noexcept;
};

template <>
struct spending<gcra> {
    static const spend_text text;
    static numbers          of(const ask<gcra>& question, instant at) noexcept;
    static gcra::state      state_of(const words& row) noexcept;
};

template <>
struct spending<lockout> {
    static const spend_text text;
    static numbers          of(const ask<lockout>& question, instant at) noexcept;
    static lockout::state   state_of(const words& row) noexcept;
};

// ---------------------------------------------------------------------------------------------

template <policy Policy>
constexpr verb needed(const ask<Policy>& question, instant at) noexcept
{
    const bool never = question.verb == verb::spend && question.cost > question.limit.capacity();
    const bool late  = question.verb == verb::give_back && at >= question.lapses;
    return never || late ? verb::peek : question.verb;
}

constexpr quantities quantities_of(std::uint64_t cost, std::uint64_t times) noexcept
{
    const auto held = [](std::uint64_t n) {
        return static_cast<std::int64_t>(n < most_counted ? n : most_counted);
    };
    std::uint64_t units = 0;
    if (__builtin_mul_overflow(cost, times, &units)) units = most_counted;
    return {held(cost), held(times), held(units)};
}

}  // namespace weir::sqlite
