// SPDX-License-Identifier: BSL-1.0
#pragma once

// When the last tries were, in two words: the last one to the nanosecond, and of each before it how
// many steps of a round length it lies back. A part of the lockout policy.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

#include "weir/policy.hpp"
#include "weir/time.hpp"

namespace weir {

/// A log taken apart. Instants of older tries are rounded up to whole steps since the epoch, all on
/// one grid, so that moving on adds no error. Not thread-safe; each function is O(tries).
struct try_log {
    static constexpr std::uint64_t most = 21;  ///< Tries: then there are three bits for each.

    instant                         last  = {};
    std::uint64_t                   count = 0;
    std::array<std::uint64_t, most> back;  ///< Of `count`: steps from the i-th last to the last.

    constexpr try_log() noexcept {}  // the rest of `back` is nothing, and takes time to clear

    /// Bits of a word for each try but the last, of 62.
    [[nodiscard]] static constexpr unsigned bits_of(std::uint64_t tries) noexcept;

    /// The shortest round step in which a window fits those bits.
    [[nodiscard]] static constexpr duration step_of(duration window, std::uint64_t tries) noexcept;

    /// The word for a log that has room for so many tries, the latest in the lowest bits, and back.
    [[nodiscard]] constexpr std::uint64_t packed(std::uint64_t tries) const noexcept;
    constexpr void                        unpack(std::uint64_t word, std::uint64_t tries) noexcept;

    /// When the i-th last try counts as made.
    [[nodiscard]] constexpr instant made_at(std::uint64_t i, duration step) const noexcept;

    /// Drops what a window has passed over, and tells the rest from `at`, which is not before the
    /// last try.
    constexpr void move_on(instant at, duration window, duration step) noexcept;

    /// So many tries now, where `move_on` went.
    constexpr void take(std::uint64_t tries) noexcept;

    /// Takes out up to so many tries of that instant, of those in one step the earlier ones. False
    /// if there was none.
    constexpr bool take_out(std::uint64_t tries, instant of, duration step) noexcept;

private:
    static constexpr std::int64_t step_after(instant at, duration step) noexcept;
};

// ---------------------------------------------------------------------------------------------

constexpr unsigned try_log::bits_of(std::uint64_t tries) noexcept
{
    return static_cast<unsigned>(62 / std::max<std::uint64_t>(tries - 1, 1));
}

constexpr duration try_log::step_of(duration window, std::uint64_t tries) noexcept
{
    using namespace std::chrono_literals;
    if (tries == 0 || tries > most) return 1ns;
    const auto longest = (std::int64_t{1} << bits_of(tries)) - 2;  // a window, and one to round
    for (const duration step :
         {duration(1ns), duration(10ns), duration(100ns), duration(1us), duration(10us),
          duration(100us), duration(1ms), duration(10ms), duration(100ms), duration(1s),
          duration(10s), duration(1min), duration(10min), duration(1h), duration(4h)})
        if (window / step <= longest) return step;
    return window / longest + 1ns;
}

constexpr std::uint64_t try_log::packed(std::uint64_t tries) const noexcept
{
    std::uint64_t word = 0;
    if (count < 2) return word;
    const auto bits = bits_of(tries);
    for (std::uint64_t i = 1; i < count; ++i) word |= back[i] << bits * (i - 1);
    return word;
}

constexpr void try_log::unpack(std::uint64_t word, std::uint64_t tries) noexcept
{
    if (count > 0) back[0] = 0;
    if (count < 2) return;
    const auto bits = bits_of(tries);
    const auto mask = (std::uint64_t{1} << bits) - 1;
    for (std::uint64_t i = 1; i < count; ++i) back[i] = word >> bits * (i - 1) & mask;
}

/// The number of the first step that is not before `at`.
constexpr std::int64_t try_log::step_after(instant at, duration step) noexcept
{
    const auto ticks = at.time_since_epoch().count();
    return ticks / step.count() + static_cast<std::int64_t>(ticks % step.count() > 0);
}

constexpr instant try_log::made_at(std::uint64_t i, duration step) const noexcept
{
    return instant(step * (step_after(last, step) - static_cast<std::int64_t>(back[i])));
}

constexpr void try_log::move_on(instant at, duration window, duration step) noexcept
{
    std::uint64_t kept = 0;
    if (count > 0) {
        const auto here   = step_after(at, step);
        const auto since  = static_cast<std::uint64_t>(here - step_after(last, step));
        const auto oldest = window_index(saturating_add(at, -window), step);
        const auto gone   = static_cast<std::uint64_t>(here - oldest);
        for (; kept < count && since < gone && back[kept] < gone - since; ++kept)
            back[kept] += since;
    }
    count = kept;
    last  = at;
}

constexpr void try_log::take(std::uint64_t tries) noexcept
{
    for (auto i = count; i > 0; --i) back[i - 1 + tries] = back[i - 1];
    for (std::uint64_t i = 0; i < tries; ++i) back[i] = 0;
    count += tries;
}

constexpr bool try_log::take_out(std::uint64_t tries, instant of, duration step) noexcept
{
    const auto steps = step_after(last, step) - step_after(of, step);
    if (count == 0 || steps < 0) return false;
    const auto    match = static_cast<std::uint64_t>(steps);
    std::uint64_t from  = 0;
    while (from < count && back[from] < match) ++from;
    auto to = from;
    while (to < count && back[to] == match) ++to;
    from = to - std::min(tries, to - from);
    if (from == to) return false;

    for (auto i = to; i < count; ++i) back[from + i - to] = back[i];
    count -= to - from;
    if (from > 0 || count == 0) return true;
    last             = made_at(0, step);
    const auto ahead = back[0];
    for (std::uint64_t i = 0; i < count; ++i) back[i] -= ahead;
    return true;
}

}  // namespace weir
