// SPDX-License-Identifier: BSL-1.0
#pragma once

// A token bucket as one instant, the generic cell rate algorithm (ITU-T I.371, annex A, virtual
// scheduling): `burst` units at once, one more each `interval`. In any span D at most
// burst + D/interval units; `gcra::at_most` picks the numbers so that no span of W holds more
// than L.

#include <algorithm>
#include <cstdint>
#include <string>

#include "weir/invalid.hpp"
#include "weir/policy.hpp"

namespace weir {

/// The extra number of `gcra::at_most`.
struct at_most_options {
    std::uint64_t burst = 1;  ///< Units at once, 1 … limit; the rest is spread over the window.
};

/// Judged in whole nanoseconds. All functions are pure, constant-time and thread-safe.
struct gcra {
    std::uint64_t limit  = 1;  ///< Units a window, in the long run; 0 refuses everything.
    duration      window = std::chrono::seconds(1);  ///< Positive.
    std::uint64_t burst  = limit;  ///< Units at once; "5 per 24 h" without it gives 5 at once.
    /// How long a unit takes to come back: ceil(window/limit). Computed; leave it to its default.
    duration interval = limit == 0 ? duration::zero() : spacing(window, limit);

    static constexpr std::uint8_t id = 3;

    /// When everything is back: the theoretical arrival time.
    struct state {
        instant               full_at                                = instant::min();
        friend constexpr bool operator==(const state&, const state&) = default;
    };

    /// At most `limit` units in any half-open span of `window`, wherever it starts: a burst of
    /// `burst` and limit - burst + 1 units a window after it. Throws std::invalid_argument unless
    /// 1 <= burst <= limit.
    [[nodiscard]] static constexpr gcra at_most(std::uint64_t limit, duration window,
                                                at_most_options options = {});

    [[nodiscard]] constexpr std::uint64_t capacity() const noexcept
    {
        return limit == 0 ? 0 : burst;
    }

    /// Also where burst × interval is over 2^61 ns (73 years): instants must hold it.
    [[nodiscard]] std::string complaint() const;

    constexpr std::uint64_t spend(state& s, std::uint64_t cost, std::uint64_t times,
                                  instant at) const noexcept;

    /// A debt is remembered up to one hour beyond the burst.
    constexpr void charge(state& s, std::uint64_t cost, instant at) const noexcept;
    constexpr void give_back(state& s, std::uint64_t cost, instant lapses,
                             instant at) const noexcept;

    [[nodiscard]] constexpr reading read(const state& s, std::uint64_t cost,
                                         instant at) const noexcept;
    [[nodiscard]] constexpr instant judged_at(const state&, instant at) const noexcept
    {
        return at;
    }
    [[nodiscard]] constexpr instant lapses(const decision& made) const noexcept;
    [[nodiscard]] constexpr instant recovered_at(const state& s) const noexcept
    {
        return s.full_at;
    }

    [[nodiscard]] constexpr state worse(const state& a, const state& b) const noexcept;
    [[nodiscard]] constexpr bool  lighter(const state& a, const state& b) const noexcept;

    friend constexpr bool operator==(const gcra&, const gcra&) = default;

private:
    [[nodiscard]] static constexpr duration spacing(duration window, std::uint64_t limit) noexcept;
    [[nodiscard]] constexpr duration        tolerance() const noexcept;
    [[nodiscard]] constexpr duration        worth(std::uint64_t units) const noexcept;
    [[nodiscard]] constexpr instant         seen_at(const state& s, instant at) const noexcept;
    [[nodiscard]] constexpr duration        spare_of(instant seen, instant at) const noexcept;
};

// ---------------------------------------------------------------------------------------------

constexpr duration gcra::spacing(duration window, std::uint64_t limit) noexcept
{
    const auto length = static_cast<std::uint64_t>(window.count());
    return duration(static_cast<std::int64_t>(length / limit +
                                              static_cast<std::uint64_t>(length % limit != 0)));
}

constexpr gcra gcra::at_most(std::uint64_t limit, duration window, at_most_options options)
{
    if (options.burst < 1 || options.burst > limit)
        detail::invalid("gcra::at_most: burst is " + std::to_string(options.burst) +
                        "; 1 to the limit, " + std::to_string(limit) + ", is allowed");
    return {.limit = limit - options.burst + 1, .window = window, .burst = options.burst};
}

inline std::string gcra::complaint() const
{
    if (window <= duration::zero()) return "gcra: window must be positive";
    if (limit == 0) return "";
    if (burst == 0) return "gcra: burst must be at least 1";
    if (interval != spacing(window, limit))
        return "gcra: interval must be ceil(window/limit), its default";
    const auto most = static_cast<std::uint64_t>((std::int64_t{1} << 61) / interval.count());
    if (burst <= most) return "";
    return "gcra: burst is " + std::to_string(burst) +
           "; burst x interval must stay within 73 years, so"
           " at most " +
           std::to_string(most) + " is allowed";
}

/// What `units` (at most the burst) take to come back.
constexpr duration gcra::worth(std::uint64_t units) const noexcept
{
    return interval * static_cast<std::int64_t>(units);
}

constexpr duration gcra::tolerance() const noexcept { return worth(burst); }

/// When everything is back, as an ask of instant `at` meets it.
constexpr instant gcra::seen_at(const state& s, instant at) const noexcept
{
    if (s.full_at <= at) return at;
    const auto believed = static_cast<std::uint64_t>((tolerance() + longest_step_back).count());
    return ticks_between(at, s.full_at) > believed ? at : s.full_at;
}

/// What may still be taken, as time. No more than instants can hold: at their end nothing is
/// granted that could not be counted.
constexpr duration gcra::spare_of(instant seen, instant at) const noexcept
{
    return saturating_add(at, tolerance()) - seen;
}

constexpr std::uint64_t gcra::spend(state& s, std::uint64_t cost, std::uint64_t times,
                                    instant at) const noexcept
{
    if (cost > capacity() || (limit == 0 && cost == 0)) return 0;
    const auto seen  = seen_at(s, at);
    const auto spare = spare_of(seen, at);
    const auto granted =
        spare < duration::zero()
            ? 0
            : detail::how_often(static_cast<std::uint64_t>(spare.count()),
                                static_cast<std::uint64_t>(worth(cost).count()), times);
    if (granted > 0) s.full_at = seen + worth(cost * granted);
    return granted;
}

constexpr void gcra::charge(state& s, std::uint64_t cost, instant at) const noexcept
{
    const auto furthest = saturating_add(at, tolerance() + longest_step_back);
    const auto most =
        limit == 0 ? 0
                   : static_cast<std::uint64_t>((tolerance() + longest_step_back) / interval) + 1;
    s.full_at = std::min(furthest, saturating_add(seen_at(s, at), worth(std::min(cost, most))));
}

constexpr void gcra::give_back(state& s, std::uint64_t cost, instant lapses,
                               instant at) const noexcept
{
    if (at >= lapses || s.full_at <= at) return;
    s.full_at = std::max(at, saturating_add(s.full_at, -worth(std::min(cost, burst))));
}

constexpr reading gcra::read(const state& s, std::uint64_t cost, instant at) const noexcept
{
    const auto seen  = seen_at(s, at);
    const auto spare = spare_of(seen, at);
    reading    told{.reset_after = seen - at};
    if (spare >= interval && limit > 0)
        told.left = static_cast<std::uint64_t>(spare.count()) /
                    static_cast<std::uint64_t>(interval.count());
    told.fits = cost <= told.left;
    told.ever = cost <= capacity();
    if (!told.fits && told.ever) told.wait = worth(cost) - spare;
    return told;
}

constexpr instant gcra::lapses(const decision& made) const noexcept
{
    return saturating_add(made.at, made.reset_after);
}

constexpr gcra::state gcra::worse(const state& a, const state& b) const noexcept
{
    return {std::max(a.full_at, b.full_at)};
}

constexpr bool gcra::lighter(const state& a, const state& b) const noexcept
{
    return a.full_at < b.full_at;
}

static_assert(policy<gcra>);

}  // namespace weir
