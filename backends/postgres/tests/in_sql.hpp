// SPDX-License-Identifier: BSL-1.0
#pragma once

// A policy's asks and states as the numbers that the SQL takes and returns, told here a second time
// so that a mistake of the store's is not also the test's.

#include <algorithm>
#include <array>
#include <cstdint>

#include "weir/policy/fixed_window.hpp"
#include "weir/policy/gcra.hpp"
#include "weir/policy/sliding_window.hpp"
#include "weir/store.hpp"

namespace in_sql {

using weir::instant;
using words = std::array<std::int64_t, 3>;
using six   = std::array<std::int64_t, 6>;  ///< verb, two of the limit, cost, times, lapses

inline constexpr std::uint64_t most_counted = (std::uint64_t{1} << 62) - 1;

constexpr std::int64_t ticks(instant at) { return at.time_since_epoch().count(); }
constexpr std::int64_t held(std::uint64_t n)
{
    return static_cast<std::int64_t>(std::min(n, most_counted));
}
/// An untouched state, which C++ begins at the first instant, is all zeros.
constexpr std::int64_t begun(instant at) { return at == instant::min() ? 0 : ticks(at); }
constexpr std::int64_t number_of(weir::verb verb) { return static_cast<std::int64_t>(verb); }

static_assert(number_of(weir::verb::spend) == 0 && number_of(weir::verb::charge) == 1 &&
              number_of(weir::verb::give_back) == 2);

template <weir::policy Policy>
struct name_of;
template <>
struct name_of<weir::fixed_window> {
    static constexpr auto value = "fixed_window";
};
template <>
struct name_of<weir::sliding_window> {
    static constexpr auto value = "sliding_window";
};
template <>
struct name_of<weir::gcra> {
    static constexpr auto value = "gcra";
};

constexpr words words_of(const weir::fixed_window::state& s)
{
    return {begun(s.start), held(s.used), 0};
}
constexpr words words_of(const weir::sliding_window::state& s)
{
    return {begun(s.start), held(s.current), held(s.previous)};
}
constexpr words words_of(const weir::gcra::state& s) { return {begun(s.full_at), 0, 0}; }

/// In a row counts end at 2^62 - 1.
constexpr void hold(weir::fixed_window::state& s) { s.used = std::min(s.used, most_counted); }
constexpr void hold(weir::sliding_window::state& s)
{
    s.current = std::min(s.current, most_counted);
}
constexpr void hold(weir::gcra::state&) {}

template <class Window>
constexpr six numbers_of(const weir::ask<Window>& question)
{
    return {number_of(question.verb), held(question.limit.limit), question.limit.window.count(),
            held(question.cost),      held(question.times),       ticks(question.lapses)};
}
constexpr six numbers_of(const weir::ask<weir::gcra>& question)
{
    const auto&   limit     = question.limit;
    const auto    interval  = limit.interval.count();
    const auto    tolerance = interval * static_cast<std::int64_t>(limit.burst);
    std::uint64_t most      = limit.burst;
    if (question.verb == weir::verb::charge && interval > 0)  // to an hour beyond, and one more
        most = static_cast<std::uint64_t>((tolerance + 3'600'000'000'000) / interval) + 1;
    return {number_of(question.verb),
            limit.limit == 0 ? -1 : tolerance,
            0,
            interval * static_cast<std::int64_t>(std::min(question.cost, most)),
            held(question.times),
            ticks(question.lapses)};
}

/// What the ask does to the state, by the policy itself. Returns what is granted.
template <weir::policy Policy>
constexpr std::uint64_t step(const weir::ask<Policy>& question, typename Policy::state& state,
                             instant at)
{
    std::uint64_t granted = 0;
    switch (question.verb) {
    case weir::verb::charge:
        question.limit.charge(state, question.cost, at);
        break;
    case weir::verb::give_back:
        question.limit.give_back(state, question.cost, question.lapses, at);
        break;
    default:
        granted = question.limit.spend(state, question.cost, question.times, at);
    }
    hold(state);
    return granted;
}

}  // namespace in_sql
