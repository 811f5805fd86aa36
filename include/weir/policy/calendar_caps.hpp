// SPDX-License-Identifier: BSL-1.0
#pragma once

// Nobody is refused, something goes later: so many an hour and so many a day, and where does the
// next one go? The seam is `place`: a calendar (policy/calendar.hpp in memory, calendar.hpp of a
// backend within its caller's transaction) answers with a release, and holds the place for it.

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>

#include "weir/time.hpp"

namespace weir {

/// Caps on what is released. Hours are [hh:00, hh+1:00) UTC, days 24 of them, whatever the time
/// zone of the machine. Immutable values, hence thread-safe.
struct calendar_caps {
    std::uint32_t      per_hour   = 30;     ///< 1 to a million.
    std::uint32_t      per_day    = 100;    ///< 1 to a million; may be less than per_hour.
    bool               spread     = false;  ///< Slot i of n at i/n of its hour, not all at :00:00.
    std::chrono::hours day_starts = {};     ///< After 00:00 UTC; 0 to 23.
    std::chrono::days  horizon = std::chrono::days(400);  ///< How far ahead is looked; 1 to 4000.

    /// What is wrong with them; empty if nothing.
    [[nodiscard]] std::string complaint() const;

    friend constexpr bool operator==(const calendar_caps&, const calendar_caps&) = default;
};

enum class placed : std::uint8_t {
    now,        ///< It may go at once.
    later,      ///< It waits for its release.
    no_window,  ///< There is no room before the horizon, and no place is held.
    failed,     ///< The store did not answer: roll the transaction back.
};

/// The answer to `place`.
struct [[nodiscard]] placement {
    placed        when    = placed::failed;
    instant       release = {};  ///< When it may go; counted in the windows that hold it.
    std::int64_t  hour    = 0;   ///< That window, in hours since 1970.
    std::uint32_t slot    = 0;   ///< Of the hour.
    std::uint32_t steps   = 0;   ///< Windows that were looked at.

    /// Whether a place is held.
    constexpr explicit operator bool() const noexcept { return when <= placed::later; }

    /// The release of what waits; none for what may go at once.
    [[nodiscard]] constexpr std::optional<instant> deferred_until() const noexcept
    {
        return when == placed::later ? std::optional(release) : std::nullopt;
    }

    friend constexpr bool operator==(const placement&, const placement&) = default;
};

/// A calendar that looks and holds in one step, so that two callers never get one place. `Within`
/// is the transaction that the place belongs to and goes back with, if there are such. A class must
/// say so itself: one that would skip the lock on some store does not compile as a calendar.
// clang-format off
template <class Calendar, class... Within>
concept atomic_calendar = Calendar::places_atomically &&
                          requires(Calendar& calendar, Within... within, instant at) {
                              { calendar.place(within..., at) } -> std::same_as<placement>;
                          };
// clang-format on

// ---------------------------------------------------------------------------------------------

namespace detail {

inline constexpr duration hour_length = std::chrono::hours(1);

constexpr std::int64_t hour_of(instant at) noexcept { return window_index(at, hour_length); }

constexpr instant start_of_hour(std::int64_t hour) noexcept { return instant(hour * hour_length); }

/// Days are numbered by their start, moved to midnight.
constexpr std::int64_t day_of(const calendar_caps& caps, std::int64_t hour) noexcept
{
    const auto moved = hour - caps.day_starts.count();
    return (moved - (moved % 24 + 24) % 24) / 24;
}

constexpr std::int64_t first_hour(const calendar_caps& caps, std::int64_t day) noexcept
{
    return day * 24 + caps.day_starts.count();
}

/// The hour after the last one that is looked at. There is none before 1970.
constexpr std::int64_t end_of_search(const calendar_caps& caps, instant at) noexcept
{
    if (at < instant()) return hour_of(at);
    return std::min(hour_of(at) + caps.horizon.count() * 24, hour_of(instant::max()));
}

/// Where slots are spread: the first one of the hour that has not passed at `at`.
constexpr std::uint32_t first_slot(const calendar_caps& caps, std::int64_t hour,
                                   instant at) noexcept
{
    if (!caps.spread || at <= start_of_hour(hour)) return 0;
    const auto into = (at - start_of_hour(hour)).count() * std::int64_t{caps.per_hour};
    return static_cast<std::uint32_t>((into + hour_length.count() - 1) / hour_length.count());
}

constexpr instant release_of(const calendar_caps& caps, std::int64_t hour, std::uint32_t slot,
                             instant at) noexcept
{
    const auto into = caps.spread ? hour_length * std::int64_t{slot} / std::int64_t{caps.per_hour}
                                  : duration::zero();
    return std::max(at, start_of_hour(hour) + into);
}

/// Hours [from, until) of which each is full or lies in a full day: the cursor over both caps.
struct full_run {
    std::int64_t from  = 0;
    std::int64_t until = 0;

    [[nodiscard]] constexpr std::int64_t past(std::int64_t hour) const noexcept
    {
        return hour >= from && hour < until ? until : hour;
    }
    constexpr void learn(std::int64_t begin, std::int64_t end) noexcept
    {
        if (begin >= end) return;
        if (begin > until || end < from) *this = {begin, end};
        else *this = {std::min(from, begin), std::max(until, end)};
    }
};

/// The first window with room from `at` on, the day asked before the hour. `Ledger` tells
/// `used_of_day(day)` and `next_of_hour(hour)`, the slot after the last that was given. Each window
/// is walked over once, then jumped over: amortised O(1) windows while `at` does not step back.
template <class Ledger>
[[nodiscard]] placement first_room(const calendar_caps& caps, Ledger& ledger, full_run& full,
                                   instant at)
{
    const auto first = hour_of(at), end = end_of_search(caps, at);
    auto       known = first;  // from here to `hour` all is full, also for an earlier `at`
    placement  found{.when = placed::no_window};
    auto       hour = full.past(first);
    for (; hour < end && !found; hour = full.past(hour)) {
        ++found.steps;
        const auto day  = day_of(caps, hour);
        const auto next = ledger.next_of_hour(hour);
        const auto slot = std::max(next, first_slot(caps, hour, at));
        if (ledger.used_of_day(day) >= caps.per_day) {
            hour = first_hour(caps, day + 1);
        } else if (slot >= caps.per_hour) {
            if (next < caps.per_hour) known = hour + 1;  // its slots have passed, and are not used
            ++hour;
        } else {
            found.release = release_of(caps, hour, slot, at);
            found.when    = found.release == at ? placed::now : placed::later;
            found.hour = hour, found.slot = slot;
        }
    }
    full.learn(known, found ? found.hour : hour);
    return found;
}

/// The place at `at` itself and no later one: with `spread`, the slot that has begun last.
template <class Ledger>
[[nodiscard]] placement room_now(const calendar_caps& caps, Ledger& ledger, instant at)
{
    placement found{.when = placed::no_window, .release = at, .hour = hour_of(at), .steps = 1};
    if (at < instant()) return found;
    const auto into  = (at - start_of_hour(found.hour)).count() * std::int64_t{caps.per_hour};
    const auto begun = static_cast<std::uint32_t>(into / hour_length.count());
    const auto next  = ledger.next_of_hour(found.hour);
    found.slot       = caps.spread ? begun : next;
    if (next <= found.slot && found.slot < caps.per_hour &&
        ledger.used_of_day(day_of(caps, found.hour)) < caps.per_day)
        found.when = placed::now;
    return found;
}

}  // namespace detail

inline std::string calendar_caps::complaint() const
{
    constexpr std::uint32_t most = 1'000'000;
    if (per_hour == 0 || per_day == 0)
        return "calendar_caps: a cap of 0 lets nothing go, ever; leave the calendar out to stop";
    if (per_hour > most || per_day > most) return "calendar_caps: a cap is a million at most";
    if (day_starts < std::chrono::hours(0) || day_starts >= std::chrono::hours(24))
        return "calendar_caps: day_starts is 0 to 23 hours after midnight UTC";
    if (horizon < std::chrono::days(1) || horizon > std::chrono::days(4000))
        return "calendar_caps: horizon is 1 to 4000 days";
    return "";
}

}  // namespace weir
