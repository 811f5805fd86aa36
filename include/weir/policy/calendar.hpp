// SPDX-License-Identifier: BSL-1.0
#pragma once

// Calendar caps of one process, in memory:
//
//     weir::calendar mails({.per_hour = 30, .per_day = 100});
//     const auto place = mails.place();
//     if (place) queue(mail, place.release);
//
// What is placed here is forgotten with the process. A backend's calendar.hpp is for what must not.

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "weir/invalid.hpp"
#include "weir/policy/calendar_caps.hpp"
#include "weir/time.hpp"

namespace weir {

/// Thread-safe; places are given in the order in which callers come. Memory: one entry for each
/// hour and day with a place in it, from two days before the latest instant to the horizon.
class calendar {
public:
    static constexpr bool places_atomically = true;

    /// Throws std::invalid_argument for caps that have a complaint.
    explicit calendar(const calendar_caps& caps) : caps_(caps)
    {
        if (const auto wrong = caps.complaint(); !wrong.empty()) detail::invalid(wrong);
    }

    /// Holds the first place from `at` on. Exactly where a search window by window would put it, as
    /// long as `at` does not step back by more than a day. O(log windows), amortised.
    placement place(instant at = weir::now())
    {
        const std::lock_guard held(turn_);
        forget_before(at);
        return taken(detail::first_room(caps_, ledger_, full_, at));
    }

    /// Holds a place at `at` itself, or none. O(log windows).
    placement place_now(instant at = weir::now())
    {
        const std::lock_guard held(turn_);
        forget_before(at);
        return taken(detail::room_now(caps_, ledger_, at));
    }

    /// Frees a place whose work was given up, once. With `spread` the day has room again, the slot
    /// only if it was the last one given of its hour.
    void give_back(const placement& place);

    [[nodiscard]] const calendar_caps& caps() const noexcept { return caps_; }

private:
    struct ledger {
        std::map<std::int64_t, std::uint32_t> hours, days;

        [[nodiscard]] std::uint32_t next_of_hour(std::int64_t hour) const
        {
            const auto at = hours.find(hour);
            return at == hours.end() ? 0 : at->second;
        }
        [[nodiscard]] std::uint32_t used_of_day(std::int64_t day) const
        {
            const auto at = days.find(day);
            return at == days.end() ? 0 : at->second;
        }
    };

    placement taken(const placement& found);
    void      forget_before(instant at);

    calendar_caps    caps_;
    std::mutex       turn_;
    ledger           ledger_;
    detail::full_run full_;
    std::int64_t     latest_day_ = std::int64_t{-1} << 40;
};

static_assert(atomic_calendar<calendar>);

// ---------------------------------------------------------------------------------------------

inline placement calendar::taken(const placement& found)
{
    if (!found) return found;
    ledger_.hours[found.hour] = found.slot + 1;
    ++ledger_.days[detail::day_of(caps_, found.hour)];
    return found;
}

inline void calendar::give_back(const placement& place)
{
    if (!place) return;
    const std::lock_guard held(turn_);
    const auto            day  = detail::day_of(caps_, place.hour);
    const auto            hour = ledger_.hours.find(place.hour);
    const auto            used = ledger_.days.find(day);
    if (hour == ledger_.hours.end() || used == ledger_.days.end() || used->second == 0) return;
    --used->second;
    if (hour->second > 0 && (!caps_.spread || hour->second == place.slot + 1)) --hour->second;
    // The day may have room again in any of its hours.
    const auto opened = detail::first_hour(caps_, day);
    if (opened <= full_.from) full_ = {};
    else full_.until = std::min(full_.until, opened);
}

inline void calendar::forget_before(instant at)
{
    const auto day = detail::day_of(caps_, detail::hour_of(at));
    if (day <= latest_day_) return;
    latest_day_ = day;
    ledger_.days.erase(ledger_.days.begin(), ledger_.days.lower_bound(day - 2));
    ledger_.hours.erase(ledger_.hours.begin(),
                        ledger_.hours.lower_bound(detail::first_hour(caps_, day - 2)));
}

}  // namespace weir
