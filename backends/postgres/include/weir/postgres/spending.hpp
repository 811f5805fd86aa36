// SPDX-License-Identifier: BSL-1.0
#pragma once

// How a policy is run inside PostgreSQL: the name of its text in the schema, the numbers that the
// text takes, and its state as the three words of a row. A policy without one does not compile on
// this store. For a policy of your own specialise `spending` as below, and install two functions
// like those in sql/spend and sql/ask.sql.

#include <cstdint>
#include <string_view>

#include "weir/policy.hpp"
#include "weir/policy/fixed_window.hpp"
#include "weir/policy/gcra.hpp"
#include "weir/policy/lockout.hpp"
#include "weir/policy/sliding_window.hpp"
#include "weir/remote/lease.hpp"
#include "weir/remote/row.hpp"
#include "weir/store.hpp"
#include "weir/time.hpp"

namespace weir::postgres {

/// The most that a limit can be and a count grows to: the sum of two fits a bigint.
inline constexpr std::uint64_t most_counted = (std::uint64_t{1} << 62) - 1;

/// The longest window: instants and the ends of two windows after them fit a bigint.
inline constexpr duration longest_window = std::chrono::days(36'525);

/// What `spending<Policy>` must have: `name`, that of weir.<name>(…) and weir.ask_<name>(…);
/// `put(question, row)`, which sets the row's `most`, `length` and `cost`; `state_of(words)`.
/// Pure and thread-safe.
template <policy Policy>
struct spending;

/// A question as a row, all but its manner.
template <policy Policy>
[[nodiscard]] remote::row row_of(const ask<Policy>& question) noexcept;

template <>
struct spending<fixed_window> {
    static constexpr std::string_view name = "fixed_window";
    static void                put(const ask<fixed_window>& question, remote::row& to) noexcept;
    static fixed_window::state state_of(const remote::words& row) noexcept;
};

template <>
struct spending<sliding_window> {
    static constexpr std::string_view name = "sliding_window";
    static void                  put(const ask<sliding_window>& question, remote::row& to) noexcept;
    static sliding_window::state state_of(const remote::words& row) noexcept;
};

template <>
struct spending<gcra> {
    static constexpr std::string_view name = "gcra";
    static void                       put(const ask<gcra>& question, remote::row& to) noexcept;
    static gcra::state                state_of(const remote::words& row) noexcept;
};

template <>
struct spending<lockout> {
    static constexpr std::string_view name = "lockout";
    static void                       put(const ask<lockout>& question, remote::row& to) noexcept;
    static lockout::state             state_of(const remote::words& row) noexcept;
};

/// The policy whose arithmetic runs: a lease is none of it.
template <policy Policy>
struct plain {
    using type = Policy;
};
template <policy Policy>
struct plain<leased<Policy>> {
    using type = Policy;
};
template <policy Policy>
using plain_policy = typename plain<Policy>::type;

template <policy Policy>
[[nodiscard]] ask<plain_policy<Policy>> plain_ask(const ask<Policy>& question) noexcept
{
    return {question.who,   question.limit, question.cost,
            question.times, question.verb,  question.lapses};
}

// ---------------------------------------------------------------------------------------------

/// What is charged or given back is so in one piece; what is spent, once for each who asks.
template <policy Policy>
remote::row row_of(const ask<Policy>& question) noexcept
{
    constexpr auto most_callers = std::uint64_t{1} << 31;
    remote::row    made{.who    = question.who,
                        .act    = question.verb,
                        .lapses = question.lapses.time_since_epoch().count()};
    if (question.verb == verb::spend)
        made.times = static_cast<std::int64_t>(question.times < most_callers ? question.times
                                                                             : most_callers);
    spending<plain_policy<Policy>>::put(plain_ask(question), made);
    return made;
}

}  // namespace weir::postgres
