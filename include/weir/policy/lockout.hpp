// SPDX-License-Identifier: BSL-1.0
#pragma once

// Failures in a window close a door, longer each time. What is spent is a try: it counts as a
// failure from the moment it is claimed, so that simultaneous tries cannot race, and is given back
// when it succeeds. An exact log of the last failures, packed into two words.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

#include "weir/policy.hpp"
#include "weir/policy/try_log.hpp"
#include "weir/time.hpp"

namespace weir {

/// The places of a window are taken by tries. Once all are, the door is closed for `first` from the
/// last try's instant, and twice as long each further time, up to `longest`; a refused try counts
/// nowhere and prolongs nothing. Failures from before a lockout do not count after it.
///
/// Instants of older failures are kept in steps of `grain`, rounded up, so a failure may count that
/// much longer than the window. All functions are pure, O(failures) and thread-safe.
struct lockout {
    std::uint64_t failures = 5;                         ///< Places in a window: 1 … 21.
    duration      window   = std::chrono::minutes(15);  ///< Positive.
    duration      first    = std::chrono::minutes(15);  ///< Not less than `window`; whole seconds.
    duration      longest  = std::chrono::hours(24);    ///< Whole seconds.
    duration      quiet    = std::chrono::days(7);  ///< Without a lockout: one step less; seconds.
    /// A try without an outcome for so long is a failure: nothing takes it back any more.
    duration outcome_within = std::chrono::seconds(30);
    /// Hundredths, up to 100: a lockout is longer by a random part of up to so much, which comes
    /// from the microseconds of the try that closed the door.
    std::uint16_t random_part = 0;
    std::uint16_t mark        = 0;  ///< Below 4096; tells the rows of one guard from others'.
    /// Computed; leave it to its default.
    duration grain = try_log::step_of(window, failures);

    static constexpr std::uint8_t  id            = 16;
    static constexpr std::uint64_t most_failures = try_log::most;
    static constexpr std::uint16_t marks         = 4096;

    /// `rest`, from the lowest bit: places taken 5, level 5, failures that the log is packed for 5,
    /// the second after which the last lockout had ended 33, mark 12. `log`: see try_log.
    struct state {
        instant               last                                   = {};
        std::uint64_t         rest                                   = 0;
        std::uint64_t         log                                    = 0;
        friend constexpr bool operator==(const state&, const state&) = default;
    };

    /// What a state means at an instant.
    struct standing {
        std::uint64_t failures = 0;      ///< Places taken.
        std::uint64_t level    = 0;      ///< How often the next lockout is doubled.
        bool          locked   = false;  ///< All places are taken, and `until` has not come.
        instant       until    = {};     ///< When the door opens; meaningless unless locked.
        instant       firm_at  = {};     ///< From then on no success opens it earlier.
    };

    [[nodiscard]] constexpr std::uint64_t capacity() const noexcept { return failures; }
    [[nodiscard]] std::string             complaint() const;

    constexpr std::uint64_t spend(state& s, std::uint64_t cost, std::uint64_t times,
                                  instant at) const noexcept;
    constexpr void          charge(state& s, std::uint64_t cost, instant at) const noexcept;

    /// Takes out tries of the instant `lapses - outcome_within`; the door opens if it was closed.
    constexpr void give_back(state& s, std::uint64_t cost, instant lapses,
                             instant at) const noexcept;

    [[nodiscard]] constexpr reading  read(const state& s, std::uint64_t cost,
                                          instant at) const noexcept;
    [[nodiscard]] constexpr standing look(const state& s, instant at) const noexcept;
    [[nodiscard]] constexpr instant  judged_at(const state& s, instant at) const noexcept;
    [[nodiscard]] constexpr instant  lapses(const decision& made) const noexcept
    {
        return saturating_add(made.at, outcome_within);
    }
    [[nodiscard]] constexpr instant recovered_at(const state& s) const noexcept;
    [[nodiscard]] constexpr state   worse(const state& a, const state& b) const noexcept;
    [[nodiscard]] constexpr bool    lighter(const state& a, const state& b) const noexcept
    {
        return recovered_at(a) < recovered_at(b);
    }

    friend constexpr bool operator==(const lockout&, const lockout&) = default;

private:
    struct view {
        try_log       tries = {};
        std::uint64_t level = 0;
        std::int64_t  ended = 0;  // the last lockout, in seconds
    };

    [[nodiscard]] constexpr view  apart(const state& s) const noexcept;
    [[nodiscard]] constexpr state packed(const view& v) const noexcept;
    [[nodiscard]] constexpr view  seen_at(const state& s, instant at) const noexcept;
    [[nodiscard]] constexpr bool  full(const view& v) const noexcept
    {
        return v.tries.count >= failures;
    }
    [[nodiscard]] constexpr instant       until(const view& v) const noexcept;
    [[nodiscard]] constexpr duration      length(std::uint64_t level) const noexcept;
    [[nodiscard]] constexpr std::uint64_t next_level(std::uint64_t level) const noexcept;
    constexpr void                        calm_down(view& v, instant at) const noexcept;
    static constexpr std::int64_t         second_after(instant at) noexcept;
};

// ---------------------------------------------------------------------------------------------

constexpr duration lockout::length(std::uint64_t level) const noexcept
{
    return first.count() > longest.count() >> level ? longest : first * (std::int64_t{1} << level);
}

constexpr std::uint64_t lockout::next_level(std::uint64_t level) const noexcept
{
    return level + static_cast<std::uint64_t>(length(level) < longest);
}

inline std::string lockout::complaint() const
{
    using std::chrono::seconds;
    const auto most  = seconds(std::int64_t{1} << 30);  // 34 years
    const auto whole = [](duration d) { return d % seconds(1) == duration::zero(); };
    if (failures < 1 || failures > most_failures)
        return "lockout: failures is " + std::to_string(failures) + "; 1 to 21 are allowed";
    if (window <= duration::zero() || first < window || longest < first || longest >= most)
        return "lockout: window, first and longest must be positive, none shorter than the one "
               "before, and shorter than 34 years";
    if (!whole(first) || !whole(longest) || !whole(quiet))
        return "lockout: first, longest and quiet must be whole seconds";
    std::int64_t levels = 1;
    for (std::uint64_t level = 0; next_level(level) != level; ++level) ++levels;
    if (quiet < seconds(1) || quiet >= most / levels)
        return "lockout: quiet must be a second or more, and within 34 years for all levels";
    if (outcome_within <= duration::zero() || outcome_within > first)
        return "lockout: outcome_within must be positive and not longer than first";
    if (random_part > 100 || mark >= marks)
        return "lockout: random_part is at most 100, and mark below 4096";
    return grain == try_log::step_of(window, failures) ? "" : "lockout: grain must be its default";
}

constexpr std::int64_t lockout::second_after(instant at) noexcept
{
    const auto second = std::chrono::ceil<std::chrono::seconds>(at.time_since_epoch()).count();
    return std::clamp<std::int64_t>(second, 0, (std::int64_t{1} << 33) - 1);
}

/// When the lockout of the last try is over. Primes spread microseconds over the hundredths.
constexpr instant lockout::until(const view& v) const noexcept
{
    const auto whole = length(v.level);
    if (random_part == 0) return saturating_add(v.tries.last, whole);
    const auto ticks  = v.tries.last.time_since_epoch().count();
    const auto micros = std::max<std::int64_t>(ticks, 0) / 1'000;
    const auto part   = micros % 1'000'003 * 7'919 % 1'009 % (std::int64_t{random_part} + 1);
    return saturating_add(v.tries.last, whole + whole / 100 * part);
}

/// A log that was packed for another number of failures is read as if all had come with the last.
constexpr lockout::view lockout::apart(const state& s) const noexcept
{
    constexpr auto seconds = (std::uint64_t{1} << 33) - 1;
    view v{.level = s.rest >> 5 & 31, .ended = static_cast<std::int64_t>(s.rest >> 15 & seconds)};
    v.tries.last  = s.last;
    v.tries.count = std::min(s.rest & 31, failures);
    v.tries.unpack((s.rest >> 10 & 31) == failures ? s.log : 0, failures);
    return v;
}

constexpr lockout::state lockout::packed(const view& v) const noexcept
{
    const auto& tries = v.tries;
    if (tries.count == 0 && v.level == 0) return {};
    return {.last = tries.count == 0 ? instant() : tries.last,
            .rest = tries.count | v.level << 5 | failures << 10 |
                    static_cast<std::uint64_t>(v.ended) << 15 | std::uint64_t{mark} << 48,
            .log = tries.packed(failures)};
}

constexpr instant lockout::judged_at(const state& s, instant at) const noexcept
{
    const bool ahead = (s.rest & 31) > 0 && s.last > at;
    return ahead && !detail::too_far_ahead(s.last, at, window) ? s.last : at;
}

/// One step less for each quiet period since the last lockout ended. Divides for few.
constexpr void lockout::calm_down(view& v, instant at) const noexcept
{
    using std::chrono::seconds;
    const auto each  = v.level > 0 ? quiet / seconds(1) : 1;
    const auto now   = v.level > 0 ? std::chrono::floor<seconds>(at).time_since_epoch().count() : 0;
    const auto steps = now > v.ended ? (now - v.ended) / each : 0;
    const bool calm  = static_cast<std::uint64_t>(steps) >= v.level;
    v.level          = calm ? 0 : v.level - static_cast<std::uint64_t>(steps);
    v.ended          = calm ? 0 : v.ended + steps * each;
}

/// As a try at `at` meets it, for which `judged_at` is asked first: as it was while the door is
/// closed, else moved on to `at`. A last try after that is the trace of a broken clock.
constexpr lockout::view lockout::seen_at(const state& s, instant at) const noexcept
{
    auto v = apart(s);
    if (v.tries.count > 0 && v.tries.last > at) v = {};
    if (full(v)) {
        if (at < until(v)) return v;
        v.ended       = second_after(until(v));
        v.level       = next_level(v.level);
        v.tries.count = 0;
    }
    calm_down(v, at);
    v.tries.move_on(at, window, grain);
    return v;
}

constexpr std::uint64_t lockout::spend(state& s, std::uint64_t cost, std::uint64_t times,
                                       instant at) const noexcept
{
    auto       v       = seen_at(s, judged_at(s, at));
    const auto granted = detail::how_often(failures - v.tries.count, cost, times);
    if (granted == 0 || cost == 0) return granted;
    v.tries.take(granted * cost);
    s = packed(v);
    return granted;
}

constexpr void lockout::charge(state& s, std::uint64_t cost, instant at) const noexcept
{
    auto v = seen_at(s, judged_at(s, at));
    if (const auto places = std::min(cost, failures - v.tries.count); places > 0)
        v.tries.take(places), s = packed(v);
}

constexpr void lockout::give_back(state& s, std::uint64_t cost, instant lapses,
                                  instant at) const noexcept
{
    if (at >= lapses) return;
    auto v = apart(s);
    if (v.tries.take_out(cost, saturating_add(lapses, -outcome_within), grain)) s = packed(v);
}

constexpr reading lockout::read(const state& s, std::uint64_t cost, instant at) const noexcept
{
    const auto  v     = seen_at(s, judged_at(s, at));
    const auto& tries = v.tries;
    reading     told{.left = failures - tries.count};
    told.fits          = cost <= told.left;
    told.ever          = cost <= failures;
    const auto free_at = [&](std::uint64_t nth) {
        return saturating_sub(saturating_add(tries.made_at(nth, grain), window), at);
    };
    if (full(v)) told.reset_after = saturating_sub(until(v), at);
    else if (tries.count > 0) told.reset_after = free_at(0);
    if (!told.fits && told.ever) told.wait = full(v) ? told.reset_after : free_at(failures - cost);
    return told;
}

constexpr lockout::standing lockout::look(const state& s, instant at) const noexcept
{
    const auto v = seen_at(s, judged_at(s, at));
    standing   told{.failures = v.tries.count, .level = v.level, .locked = full(v)};
    if (!told.locked) return told;
    told.until   = until(v);
    told.firm_at = saturating_add(v.tries.last, outcome_within);
    return told;
}

constexpr instant lockout::recovered_at(const state& s) const noexcept
{
    const auto v    = apart(s);
    const auto calm = [&](std::int64_t ended, std::uint64_t level) {
        return instant(std::chrono::seconds(ended) + quiet * static_cast<std::int64_t>(level));
    };
    if (full(v)) return calm(second_after(until(v)), next_level(v.level));
    const auto calmed = v.level > 0 ? calm(v.ended, v.level) : instant::min();
    if (v.tries.count == 0) return calmed;
    return std::max(calmed, saturating_add(v.tries.made_at(0, grain), window));
}

/// The places of the fuller one, taken with the later one's last. The random part is drawn anew.
constexpr lockout::state lockout::worse(const state& a, const state& b) const noexcept
{
    const auto x = apart(a), y = apart(b);
    view       v{.level = std::max(x.level, y.level), .ended = std::max(x.ended, y.ended)};
    v.tries.last = std::max(x.tries.count > 0 ? x.tries.made_at(0, grain) : instant::min(),
                            y.tries.count > 0 ? y.tries.made_at(0, grain) : instant::min());
    v.tries.count = std::max(x.tries.count, y.tries.count);
    v.tries.unpack(0, failures);
    return packed(v);
}

static_assert(policy<lockout>);

}  // namespace weir
