// SPDX-License-Identifier: BSL-1.0
#pragma once

// Instants, durations and epoch-aligned windows, in integer nanoseconds.
// `now()` is the only function of the library that reads a clock; all others are handed an instant.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

namespace weir {

/// A length of time in nanoseconds.
using duration = std::chrono::nanoseconds;

/// A point in time: nanoseconds since 1970-01-01T00:00:00Z, leap seconds not counted (POSIX time).
using instant = std::chrono::sys_time<duration>;

/// The present instant: a steady clock plus an offset that only grows. It follows the system clock
/// forward and never steps back or freezes when that one is set back. The system clock is looked
/// at once a second at most, by whichever caller notices. Thread-safe, lock-free, never throws.
[[nodiscard]] instant now() noexcept;

/// `at + by`, held at the ends of the type instead of wrapping. Constant time.
[[nodiscard]] constexpr instant saturating_add(instant at, duration by) noexcept;

/// `later - earlier`, held at the ends of the type instead of wrapping. Constant time.
[[nodiscard]] constexpr duration saturating_sub(instant later, instant earlier) noexcept;

/// The nanoseconds from `earlier` to `later`, which must not be before it: never overflows.
[[nodiscard]] constexpr std::uint64_t ticks_between(instant earlier, instant later) noexcept;

/// `a + b`, held at the ends of the type instead of wrapping. Constant time.
[[nodiscard]] constexpr duration saturating_add(duration a, duration b) noexcept;

/// How many whole windows lie between the Unix epoch and `at`, rounded down (negative before it).
/// `window` must be positive.
[[nodiscard]] constexpr std::int64_t window_index(instant at, duration window) noexcept;

/// The start of the window `[k*window, (k+1)*window)` that holds `at`, measured from the Unix
/// epoch, so that all processes share its edges. `window` must be positive.
[[nodiscard]] constexpr instant window_start(instant at, duration window) noexcept;

/// The end of the window that holds `at`: the first instant that is no longer in it.
[[nodiscard]] constexpr instant window_end(instant at, duration window) noexcept;

// ---------------------------------------------------------------------------------------------

constexpr instant saturating_add(instant at, duration by) noexcept
{
    std::int64_t sum = 0;
    if (!__builtin_add_overflow(at.time_since_epoch().count(), by.count(), &sum))
        return instant(duration(sum));
    return by.count() > 0 ? instant::max() : instant::min();
}

constexpr duration saturating_add(duration a, duration b) noexcept
{
    return saturating_add(instant(a), b).time_since_epoch();
}

constexpr duration saturating_sub(instant later, instant earlier) noexcept
{
    std::int64_t difference = 0;
    if (!__builtin_sub_overflow(later.time_since_epoch().count(),
                                earlier.time_since_epoch().count(), &difference))
        return duration(difference);
    return later > earlier ? duration::max() : duration::min();
}

constexpr std::uint64_t ticks_between(instant earlier, instant later) noexcept
{
    return static_cast<std::uint64_t>(later.time_since_epoch().count()) -
           static_cast<std::uint64_t>(earlier.time_since_epoch().count());
}

constexpr std::int64_t window_index(instant at, duration window) noexcept
{
    const auto ticks = at.time_since_epoch().count();
    const auto index = ticks / window.count();
    return index - static_cast<std::int64_t>(ticks % window.count() < 0);
}

constexpr instant window_start(instant at, duration window) noexcept
{
    const auto into = at.time_since_epoch().count() % window.count();
    // Saturates in the window that holds the first representable instant.
    return saturating_add(at, duration(-(into < 0 ? into + window.count() : into)));
}

constexpr instant window_end(instant at, duration window) noexcept
{
    const auto into = at.time_since_epoch().count() % window.count();
    return saturating_add(at, duration(into < 0 ? -into : window.count() - into));
}

namespace detail {

/// What `now()` adds to the steady clock, and the steady instant at which to look again.
struct clock_offset {
    std::atomic<std::int64_t> offset{0};
    std::atomic<std::int64_t> look_again{std::numeric_limits<std::int64_t>::min()};
};
inline constinit clock_offset present;

inline std::int64_t steady_ticks() noexcept
{
    return duration(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Raises the offset to what the system clock says now; a system clock set back raises nothing.
inline void follow_system_clock(std::int64_t steady) noexcept
{
    using std::chrono::system_clock;
    const auto system = duration(system_clock::now().time_since_epoch()).count();
    auto       known  = present.offset.load(std::memory_order_relaxed);
    while (known < system - steady &&
           !present.offset.compare_exchange_weak(known, system - steady)) {}
    present.look_again.store(steady + 1'000'000'000, std::memory_order_release);
}

}  // namespace detail

inline instant now() noexcept
{
    const auto steady = detail::steady_ticks();
    // The acquire pairs with the release above: whoever sees the next look sees its offset too.
    if (steady >= detail::present.look_again.load(std::memory_order_acquire)) [[unlikely]]
        detail::follow_system_clock(steady);
    return instant(duration(steady + detail::present.offset.load(std::memory_order_relaxed)));
}

}  // namespace weir
