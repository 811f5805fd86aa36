// SPDX-License-Identifier: BSL-1.0
#pragma once

// At most `limit` units in each window [k*W, (k+1)*W) against the Unix epoch. The simplest to
// explain and the cheapest to share; a client that spends the end of one window and the start of
// the next has 2*limit within moments.

#include <algorithm>
#include <cstdint>
#include <string>

#include "weir/policy.hpp"

namespace weir {

/// Judged in whole nanoseconds. All functions are pure, constant-time and thread-safe.
struct fixed_window {
    std::uint64_t limit  = 1;                        ///< Units a window; 0 refuses everything.
    duration      window = std::chrono::seconds(1);  ///< Positive.

    static constexpr std::uint8_t id = 1;

    /// The units taken in the window that starts at `start`.
    struct state {
        instant               start                                  = instant::min();
        std::uint64_t         used                                   = 0;
        friend constexpr bool operator==(const state&, const state&) = default;
    };

    [[nodiscard]] constexpr std::uint64_t capacity() const noexcept { return limit; }
    [[nodiscard]] std::string             complaint() const;

    constexpr std::uint64_t spend(state& s, std::uint64_t cost, std::uint64_t times,
                                  instant at) const noexcept;
    constexpr void          charge(state& s, std::uint64_t cost, instant at) const noexcept;
    constexpr void          give_back(state& s, std::uint64_t cost, instant lapses,
                                      instant at) const noexcept;

    [[nodiscard]] constexpr reading read(const state& s, std::uint64_t cost,
                                         instant at) const noexcept;
    [[nodiscard]] constexpr instant judged_at(const state& s, instant at) const noexcept;
    [[nodiscard]] constexpr instant lapses(const decision& made) const noexcept;
    [[nodiscard]] constexpr instant recovered_at(const state& s) const noexcept;

    [[nodiscard]] constexpr state worse(const state& a, const state& b) const noexcept;
    [[nodiscard]] constexpr bool  lighter(const state& a, const state& b) const noexcept;

    friend constexpr bool operator==(const fixed_window&, const fixed_window&) = default;

private:
    [[nodiscard]] constexpr state   seen_at(const state& s, instant at) const noexcept;
    [[nodiscard]] constexpr instant end(const state& s) const noexcept;
};

// ---------------------------------------------------------------------------------------------

inline std::string fixed_window::complaint() const
{
    return window > duration::zero() ? "" : "fixed_window: window must be positive";
}

constexpr instant fixed_window::end(const state& s) const noexcept
{
    return saturating_add(s.start, window);
}

/// The state as an ask of instant `at` meets it: rolled on when its window is over, and kept when
/// the clock has stepped back a little.
constexpr fixed_window::state fixed_window::seen_at(const state& s, instant at) const noexcept
{
    const bool current =
        at < s.start ? !detail::too_far_ahead(s.start, at, window)
                     : ticks_between(s.start, at) < static_cast<std::uint64_t>(window.count());
    return current && s.used > 0 ? s : state{window_start(at, window), 0};
}

constexpr std::uint64_t fixed_window::spend(state& s, std::uint64_t cost, std::uint64_t times,
                                            instant at) const noexcept
{
    auto       seen    = seen_at(s, at);
    const auto granted = detail::how_often(detail::sub_clamped(limit, seen.used), cost, times);
    if (granted == 0) return 0;
    seen.used += granted * cost;
    s = seen;
    return granted;
}

constexpr void fixed_window::charge(state& s, std::uint64_t cost, instant at) const noexcept
{
    s      = seen_at(s, at);
    s.used = detail::add_saturating(s.used, cost);
}

constexpr void fixed_window::give_back(state& s, std::uint64_t cost, instant lapses,
                                       instant at) const noexcept
{
    if (at >= lapses || end(s) != lapses) return;
    s.used = detail::sub_clamped(s.used, cost);
}

constexpr reading fixed_window::read(const state& s, std::uint64_t cost, instant at) const noexcept
{
    const auto seen = seen_at(s, at);
    reading    told{.left = detail::sub_clamped(limit, seen.used)};
    const auto turn = saturating_sub(end(seen), at);
    told.fits       = cost <= told.left;
    told.ever       = cost <= limit;
    if (!told.fits) told.wait = turn;
    if (seen.used > 0) told.reset_after = turn;
    return told;
}

constexpr instant fixed_window::judged_at(const state& s, instant at) const noexcept
{
    return at >= s.start ? at : std::max(at, seen_at(s, at).start);
}

constexpr instant fixed_window::lapses(const decision& made) const noexcept
{
    return window_end(made.at, window);
}

constexpr instant fixed_window::recovered_at(const state& s) const noexcept
{
    return s.used == 0 ? instant::min() : end(s);
}

constexpr fixed_window::state fixed_window::worse(const state& a, const state& b) const noexcept
{
    if (a.start != b.start) return a.start > b.start ? a : b;
    return a.used > b.used ? a : b;
}

constexpr bool fixed_window::lighter(const state& a, const state& b) const noexcept
{
    return a.start != b.start ? a.start < b.start : a.used < b.used;
}

static_assert(policy<fixed_window>);

}  // namespace weir
