// SPDX-License-Identifier: BSL-1.0

#include "weir/postgres/spending.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace weir::postgres {
namespace {

std::int64_t held(std::uint64_t count) noexcept
{
    return static_cast<std::int64_t>(std::min(count, most_counted));
}

/// What the row's text takes at once: one caller's units, or all that are charged or given back.
template <policy Policy>
std::uint64_t units_of(const ask<Policy>& question) noexcept
{
    if (question.verb == verb::spend) return question.cost;
    std::uint64_t units = 0;
    return __builtin_mul_overflow(question.cost, question.times, &units) ? most_counted : units;
}

template <policy Policy>
void put_counts(const ask<Policy>& question, remote::row& to) noexcept
{
    to.most   = held(question.limit.limit);
    to.length = question.limit.window.count();
    to.cost   = held(units_of(question));
}

}  // namespace

void spending<fixed_window>::put(const ask<fixed_window>& question, remote::row& to) noexcept
{
    put_counts(question, to);
}

void spending<sliding_window>::put(const ask<sliding_window>& question, remote::row& to) noexcept
{
    put_counts(question, to);
}

/// Durations in place of units. The limiter's checks keep burst × interval within 2^61 ns. Of a
/// limit of 0 not even nothing is granted: no debt is small enough for a tolerance below zero.
void spending<gcra>::put(const ask<gcra>& question, remote::row& to) noexcept
{
    const auto& limit = question.limit;
    if (limit.limit == 0) {
        to.most = -1;
        return;
    }
    const auto worth = [&](std::uint64_t units) {
        return limit.interval * static_cast<std::int64_t>(units);
    };
    const auto believed = worth(limit.burst) + longest_step_back;
    // One unit more than can be spent never fits; more than all is not given back.
    auto most = limit.burst;
    if (question.verb == verb::charge)
        most = static_cast<std::uint64_t>(believed / limit.interval) + 1;
    else if (question.verb == verb::spend) ++most;
    to.most = worth(limit.burst).count();
    to.cost = worth(std::min(units_of(question), most)).count();
}

/// The complaint of the limiter keeps each number within its bits.
void spending<lockout>::put(const ask<lockout>& question, remote::row& to) noexcept
{
    const auto& limit   = question.limit;
    const auto  seconds = [](duration length) { return length / std::chrono::seconds(1); };
    const auto  tries   = std::min<std::uint64_t>(units_of(question), 31);
    to.most = held(limit.failures) | held(tries) << 5 | std::int64_t{limit.random_part} << 10 |
              std::int64_t{limit.mark} << 17 | seconds(limit.quiet) << 29;
    if (question.verb == verb::give_back) {
        const auto stamp = saturating_add(question.lapses, -limit.outcome_within);
        to.length        = limit.grain.count();
        to.cost          = stamp.time_since_epoch().count();
        to.times         = limit.window.count();
    } else {
        to.length = limit.window.count();
        to.cost   = seconds(limit.first) | seconds(limit.longest) << 30;
        to.lapses = limit.grain.count();
    }
}

fixed_window::state spending<fixed_window>::state_of(const remote::words& row) noexcept
{
    return {instant(duration(row[0])), static_cast<std::uint64_t>(row[1])};
}

sliding_window::state spending<sliding_window>::state_of(const remote::words& row) noexcept
{
    return {instant(duration(row[0])), static_cast<std::uint64_t>(row[1]),
            static_cast<std::uint64_t>(row[2])};
}

gcra::state spending<gcra>::state_of(const remote::words& row) noexcept
{
    return {instant(duration(row[0]))};
}

lockout::state spending<lockout>::state_of(const remote::words& row) noexcept
{
    if (row[1] >= 0) return {};
    return {instant(duration(row[0])), static_cast<std::uint64_t>(~row[1]),
            static_cast<std::uint64_t>(row[2])};
}

}  // namespace weir::postgres
