// SPDX-License-Identifier: BSL-1.0
#pragma once

// At most `limit` units in the trailing window, estimated from two counters: the units of the
// current epoch-aligned window plus the share of the previous one's that still lies in the trailing
// window. At most `limit` in each aligned window and 2*limit - 1 in any span of one window.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "weir/policy.hpp"

namespace weir {

/// Admits when current*W + previous*(W - elapsed) + cost*W <= limit*W, in whole microseconds of
/// elapsed time (its tick: finer time is rounded against the client). All functions are pure,
/// constant-time and thread-safe.
struct sliding_window {
    std::uint64_t limit  = 1;                        ///< Units; 0 refuses everything.
    duration      window = std::chrono::seconds(1);  ///< Positive, whole microseconds.

    static constexpr std::uint8_t id   = 2;
    static constexpr duration     tick = std::chrono::microseconds(1);

    /// The units taken in the window that starts at `start`, and in the one before it.
    struct state {
        instant               start                                  = instant::min();
        std::uint64_t         current                                = 0;
        std::uint64_t         previous                               = 0;
        friend constexpr bool operator==(const state&, const state&) = default;
    };

    [[nodiscard]] constexpr std::uint64_t capacity() const noexcept { return limit; }

    /// Also where limit × window (in microseconds) reaches 2^63: stores compute with it.
    [[nodiscard]] std::string complaint() const;

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

    friend constexpr bool operator==(const sliding_window&, const sliding_window&) = default;

private:
    [[nodiscard]] constexpr std::uint64_t ticks() const noexcept;
    [[nodiscard]] constexpr instant       end(const state& s) const noexcept;
    [[nodiscard]] constexpr duration      until_end(const state& seen, instant at) const noexcept;
    [[nodiscard]] constexpr state         seen_at(const state& s, instant at) const noexcept;
    [[nodiscard]] constexpr std::uint64_t room(const state& seen, instant at) const noexcept;
    [[nodiscard]] constexpr instant first_fit(const state& seen, std::uint64_t cost) const noexcept;
};

// ---------------------------------------------------------------------------------------------

inline std::string sliding_window::complaint() const
{
    if (window <= duration::zero()) return "sliding_window: window must be positive";
    if (window % tick != duration::zero())
        return "sliding_window: window must be whole microseconds";
    const auto most = std::uint64_t{std::numeric_limits<std::int64_t>::max()} / ticks();
    if (limit <= most) return "";
    return "sliding_window: limit is " + std::to_string(limit) +
           "; limit x window in microseconds must"
           " stay below 2^63, so at most " +
           std::to_string(most) + " is allowed";
}

constexpr std::uint64_t sliding_window::ticks() const noexcept
{
    return static_cast<std::uint64_t>(window / tick);
}

constexpr instant sliding_window::end(const state& s) const noexcept
{
    return saturating_add(s.start, window);
}

/// From `at` to the end of the window that it was found in, or sat out before.
constexpr duration sliding_window::until_end(const state& seen, instant at) const noexcept
{
    if (at < seen.start) return saturating_sub(end(seen), at);
    return window - duration(static_cast<std::int64_t>(ticks_between(seen.start, at)));
}

/// The state as an ask of instant `at` meets it: rolled on when its window is over, and kept when
/// the clock has stepped back a little.
constexpr sliding_window::state sliding_window::seen_at(const state& s, instant at) const noexcept
{
    const auto length  = static_cast<std::uint64_t>(window.count());
    const bool touched = s.current > 0 || s.previous > 0;
    if (at < s.start) {
        if (touched && !detail::too_far_ahead(s.start, at, window)) return s;
    } else if (const auto since = ticks_between(s.start, at); since < length) {
        if (touched) return s;
    } else if (since - length < length && s.current > 0) {
        return {end(s), 0, s.current};
    }
    return {window_start(at, window), 0, 0};
}

/// Units free: limit - current - previous*(W - elapsed)/W, the last rounded up. One division, in
/// 64 bits unless a debt made `previous` larger than any limit can be.
constexpr std::uint64_t sliding_window::room(const state& seen, instant at) const noexcept
{
    const auto free = detail::sub_clamped(limit, seen.current);
    if (seen.previous == 0 || free == 0) return free;
    const auto elapsed =
        at < seen.start ? 0
                        : ticks_between(seen.start, at) / static_cast<std::uint64_t>(tick.count());
    std::uint64_t covered = 0;
    if (__builtin_mul_overflow(seen.previous, ticks() - elapsed, &covered)) [[unlikely]]
        return 0;  // previous*(W - elapsed) >= 2^64 > limit*W
    const auto still_here = covered / ticks() + static_cast<std::uint64_t>(covered % ticks() != 0);
    return detail::sub_clamped(free, still_here);
}

/// The first instant at which `cost` (at most the limit) fits if nobody else spends.
constexpr instant sliding_window::first_fit(const state& seen, std::uint64_t cost) const noexcept
{
    const auto free  = limit - cost;
    const auto after = [&](instant from, std::uint64_t fading, std::uint64_t spare) {
        // fading*(W - elapsed) <= spare*W, solved for the smallest whole tick
        const auto remaining = spare >= fading ? ticks() : spare * ticks() / fading;
        return saturating_add(from, tick * static_cast<std::int64_t>(ticks() - remaining));
    };
    if (seen.current <= free) {
        const auto within = after(seen.start, seen.previous, free - seen.current);
        if (within < end(seen)) return within;
    }
    return after(end(seen), seen.current, free);
}

constexpr std::uint64_t sliding_window::spend(state& s, std::uint64_t cost, std::uint64_t times,
                                              instant at) const noexcept
{
    auto       seen    = seen_at(s, at);
    const auto granted = detail::how_often(room(seen, at), cost, times);
    if (granted == 0) return 0;
    seen.current += granted * cost;
    s = seen;
    return granted;
}

constexpr void sliding_window::charge(state& s, std::uint64_t cost, instant at) const noexcept
{
    s         = seen_at(s, at);
    s.current = detail::add_saturating(s.current, cost);
}

constexpr void sliding_window::give_back(state& s, std::uint64_t cost, instant lapses,
                                         instant at) const noexcept
{
    if (at >= lapses || end(s) != lapses) return;
    s.current = detail::sub_clamped(s.current, cost);
}

constexpr reading sliding_window::read(const state& s, std::uint64_t cost,
                                       instant at) const noexcept
{
    const auto seen = seen_at(s, at);
    reading    told{.left = room(seen, at)};
    told.fits = cost <= told.left;
    told.ever = cost <= limit;
    if (!told.fits && told.ever) told.wait = saturating_sub(first_fit(seen, cost), at);
    if (seen.current > 0) told.reset_after = saturating_add(until_end(seen, at), window);
    else if (seen.previous > 0) told.reset_after = until_end(seen, at);
    return told;
}

constexpr instant sliding_window::judged_at(const state& s, instant at) const noexcept
{
    return at >= s.start ? at : std::max(at, seen_at(s, at).start);
}

constexpr instant sliding_window::lapses(const decision& made) const noexcept
{
    return window_end(made.at, window);
}

constexpr instant sliding_window::recovered_at(const state& s) const noexcept
{
    if (s.current > 0) return saturating_add(end(s), window);
    return s.previous > 0 ? end(s) : instant::min();
}

constexpr sliding_window::state sliding_window::worse(const state& a, const state& b) const noexcept
{
    if (a.start < b.start) return worse(b, a);
    if (a.start == b.start)
        return {a.start, std::max(a.current, b.current), std::max(a.previous, b.previous)};
    const auto faded = end(b) == a.start ? b.current : 0;
    return {a.start, a.current, std::max(a.previous, faded)};
}

constexpr bool sliding_window::lighter(const state& a, const state& b) const noexcept
{
    if (a.start != b.start) return a.start < b.start;
    return a.current != b.current ? a.current < b.current : a.previous < b.previous;
}

static_assert(policy<sliding_window>);

}  // namespace weir
