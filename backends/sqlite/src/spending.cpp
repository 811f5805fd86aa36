// SPDX-License-Identifier: BSL-1.0

#include "weir/sqlite/spending.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "weir/sqlite/texts.hpp"

namespace weir::sqlite {
namespace {

constexpr std::int64_t ticks(instant at) noexcept
{
    return at.time_since_epoch().count();
}

/// The bounds that windows are compared with: worked out here, because here they can be held at
/// the ends of the type.
struct bounds {
    bounds(duration window, instant lapses, instant at) noexcept
        : first_current(saturating_add(at, duration(1) - window)),
          first_previous(saturating_add(first_current, -window)),
          furthest(saturating_add(at, std::max(window, longest_step_back))),
          window_start(weir::window_start(at, window)), charged(saturating_add(lapses, -window))
    {
    }
    instant first_current, first_previous, furthest, window_start, charged;
};

std::int64_t held(std::uint64_t count) noexcept
{
    return static_cast<std::int64_t>(std::min(count, most_counted));
}

constexpr const char* fixed_window_names[] = {
    ":cost", ":times", ":units", ":most", ":limit", ":window",
    ":first_current", ":furthest", ":window_start", ":charged"};

constexpr const char* sliding_window_names[] = {
    ":cost", ":times", ":units", ":most", ":limit", ":window",
    ":first_current", ":furthest", ":window_start", ":charged",
    ":first_previous", ":ticks", ":at"};

constexpr const char* gcra_names[] = {":times", ":at",     ":tolerance", ":worth",
                                      ":debt",  ":refund", ":furthest"};

constexpr const char* lockout_names[] = {
    ":cost",  ":times",   ":units", ":at",   ":failures", ":grain", ":window",
    ":first", ":longest", ":quiet", ":part", ":mark",     ":stamp", ":furthest"};

/// The numbers in the order of the names; the compiler counts neither, hence the check.
template <std::size_t Names, class... Number>
numbers in_order(const char* const (&)[Names], Number... number) noexcept
{
    static_assert(Names == sizeof...(Number) && Names <= std::tuple_size_v<numbers>);
    return {number...};
}

}  // namespace

constinit const spend_text spending<fixed_window>::text{texts::spend_fixed_window,
                                                        fixed_window_names};
constinit const spend_text spending<sliding_window>::text{texts::spend_sliding_window,
                                                          sliding_window_names};
constinit const spend_text spending<gcra>::text{texts::spend_gcra, gcra_names};
constinit const spend_text spending<lockout>::text{texts::spend_lockout, lockout_names};

numbers spending<fixed_window>::of(const ask<fixed_window>& question, instant at) noexcept
{
    const auto   asked = quantities_of(question.cost, question.times);
    const auto&  limit = question.limit;
    const bounds edge(limit.window, question.lapses, at);
    return in_order(fixed_window_names, asked.cost, asked.times, asked.units, held(most_counted),
                    held(limit.limit), limit.window.count(), ticks(edge.first_current),
                    ticks(edge.furthest), ticks(edge.window_start), ticks(edge.charged));
}

numbers spending<sliding_window>::of(const ask<sliding_window>& question, instant at) noexcept
{
    const auto   asked = quantities_of(question.cost, question.times);
    const auto&  limit = question.limit;
    const bounds edge(limit.window, question.lapses, at);
    return in_order(sliding_window_names, asked.cost, asked.times, asked.units, held(most_counted),
                    held(limit.limit), limit.window.count(), ticks(edge.first_current),
                    ticks(edge.furthest), ticks(edge.window_start), ticks(edge.charged),
                    ticks(edge.first_previous), limit.window / sliding_window::tick, ticks(at));
}

/// Durations in place of units. The limiter's checks keep burst × interval within 2^61 ns. Of a
/// limit of 0 not even nothing is granted: no debt is small enough for a tolerance below zero.
numbers spending<gcra>::of(const ask<gcra>& question, instant at) noexcept
{
    const auto& limit     = question.limit;
    const auto  worth     = [&](std::uint64_t units) {
        return limit.interval * static_cast<std::int64_t>(units);
    };
    const auto  tolerance = worth(limit.burst);
    const auto  believed  = tolerance + longest_step_back;
    const auto  units =
        static_cast<std::uint64_t>(quantities_of(question.cost, question.times).units);
    const auto most_owed =
        limit.limit == 0 ? 0 : static_cast<std::uint64_t>(believed / limit.interval) + 1;
    return in_order(gcra_names, quantities_of(1, question.times).times, ticks(at),
                    limit.limit == 0 ? -1 : tolerance.count(),
                    worth(std::min(question.cost, limit.burst)).count(),
                    worth(std::min(units, most_owed)).count(),
                    worth(std::min(units, limit.burst)).count(),
                    ticks(saturating_add(at, believed)));
}

numbers spending<lockout>::of(const ask<lockout>& question, instant at) noexcept
{
    const auto  asked   = quantities_of(question.cost, question.times);
    const auto& limit   = question.limit;
    const auto  seconds = [](duration length) { return length / std::chrono::seconds(1); };
    const auto  stamp   = saturating_add(question.lapses, -limit.outcome_within);
    return in_order(lockout_names, asked.cost, asked.times, asked.units, ticks(at),
                    held(limit.failures), limit.grain.count(), limit.window.count(),
                    seconds(limit.first), seconds(limit.longest), seconds(limit.quiet),
                    std::int64_t{limit.random_part}, std::int64_t{limit.mark}, ticks(stamp),
                    ticks(saturating_add(at, std::max(limit.window, longest_step_back))));
}

fixed_window::state spending<fixed_window>::state_of(const words& row) noexcept
{
    return {instant(duration(row[0])), static_cast<std::uint64_t>(row[1])};
}

sliding_window::state spending<sliding_window>::state_of(const words& row) noexcept
{
    return {instant(duration(row[0])), static_cast<std::uint64_t>(row[1]),
            static_cast<std::uint64_t>(row[2])};
}

gcra::state spending<gcra>::state_of(const words& row) noexcept
{
    return {instant(duration(row[0]))};
}

lockout::state spending<lockout>::state_of(const words& row) noexcept
{
    if (row[1] >= 0) return {};
    return {instant(duration(row[0])), static_cast<std::uint64_t>(~row[1]),
            static_cast<std::uint64_t>(row[2])};
}

}  // namespace weir::sqlite
