// SPDX-License-Identifier: BSL-1.0
#pragma once

// A clock that stands still until it is told to move, for tests of code that uses limiters.

#include <atomic>
#include <chrono>
#include <cstdint>

#include "weir/time.hpp"

namespace weir::testing {

/// Hand its function to a store and move time by hand:
///
///     weir::testing::manual_clock clock;
///     weir::memory_store          counters({.clock = clock.function()});
///     clock.advance(1min);
///
/// A store's clock is a plain function, so there is one manual instant in a process: all manual
/// clocks show it, and a new one sets it. Thread-safe; but tests that run at the same time in one
/// process must not each move it.
class manual_clock {
public:
    /// The instant at which a clock starts by default: an edge of all windows that divide a day.
    static constexpr instant new_year = std::chrono::sys_days(std::chrono::days(20'454));  // 2026

    explicit manual_clock(instant start = new_year) noexcept { set(start); }
    manual_clock(const manual_clock&)            = delete;
    manual_clock& operator=(const manual_clock&) = delete;

    /// What stores take as their clock. It outlives the manual_clock.
    [[nodiscard]] auto function() const noexcept -> instant (*)() { return &present; }

    [[nodiscard]] instant now() const noexcept { return present(); }

    void set(instant to) noexcept { ticks_.store(to.time_since_epoch().count()); }

    /// A negative step goes back, as clocks do at times. Held at the ends of the type.
    void advance(duration by) noexcept;

private:
    static instant present() { return instant(duration(ticks_.load())); }

    static inline constinit std::atomic<std::int64_t> ticks_{0};
};

// ---------------------------------------------------------------------------------------------

inline void manual_clock::advance(duration by) noexcept
{
    auto before = ticks_.load();
    auto after  = before;
    do after = saturating_add(instant(duration(before)), by).time_since_epoch().count();
    while (!ticks_.compare_exchange_weak(before, after));
}

}  // namespace weir::testing
