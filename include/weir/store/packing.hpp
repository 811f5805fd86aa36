// SPDX-License-Identifier: BSL-1.0
#pragma once

// How the state of a policy fits a slot beside its key's tag. The window is in the key, so an
// index stands for an instant here and nowhere else.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/invalid.hpp"
#include "weir/policy.hpp"
#include "weir/policy/fixed_window.hpp"
#include "weir/policy/gcra.hpp"
#include "weir/policy/sliding_window.hpp"
#include "weir/store/slot.hpp"
#include "weir/time.hpp"

namespace weir {

/// The lower `stamp_bits` of a slot's head and all of its word hold a state; the rest of the head
/// is the key's tag. The lowest bit of the head is left clear: it marks a slot that is only
/// claimed. A word and stamp of zeros are the untouched state. Users' policies specialise this.
template <policy Policy>
class packing;

/// An ask's place among the windows: worked out once, used to unpack and to pack.
struct grid {
    instant      at    = {};
    std::int64_t index = 0;
    instant      start = {};
};

/// The index of a window, modulo a power of two that spans at least 2.2 years, or 2^31 windows
/// where windows are under 33 ms. A state that nobody asked for during just that span, less the
/// hour that a clock may step back, and whose slot nobody else took, is read as one of the hour
/// ahead. Windows of 1 ms wrap after 25 days.
class window_stamp {
public:
    constexpr explicit window_stamp(duration window) noexcept
        : window_(window),
          bits_(std::clamp(
              57 - static_cast<int>(std::bit_width(static_cast<std::uint64_t>(window.count()))), 2,
              31))
    {
    }

    [[nodiscard]] constexpr int bits() const noexcept { return bits_; }

    [[nodiscard]] constexpr grid at(instant at) const noexcept
    {
        const auto index = window_index(at, window_);  // one division for both
        const auto since =
            static_cast<std::uint64_t>(at.time_since_epoch().count()) -
            static_cast<std::uint64_t>(index) * static_cast<std::uint64_t>(window_.count());
        return {at, index, saturating_add(at, -duration(static_cast<std::int64_t>(since)))};
    }

    /// The start of the window that is nearest to the ask's among those with this stamp.
    [[nodiscard]] constexpr instant start(std::uint64_t stamp, const grid& now) const noexcept
    {
        const auto away = (stamp - static_cast<std::uint64_t>(now.index)) << (64 - bits_);
        const auto by   = static_cast<std::int64_t>(away) >> (64 - bits_);
        return by == 0 ? now.start : start_of(now.index + by);
    }

    [[nodiscard]] constexpr std::uint64_t stamp(instant start, const grid& now) const noexcept
    {
        const auto index = start == now.start ? now.index : window_index(start, window_);
        return static_cast<std::uint64_t>(index) & ~(~std::uint64_t{0} << bits_);
    }

private:
    [[nodiscard]] constexpr instant start_of(std::int64_t index) const noexcept
    {
        std::int64_t start = 0;
        if (__builtin_mul_overflow(index, window_.count(), &start))
            return index < 0 ? instant::min() : instant::max();
        return instant(duration(start));
    }

    duration window_;
    int      bits_;
};

/// 64 bits of count.
template <>
class packing<fixed_window> {
public:
    constexpr explicit packing(const fixed_window& limit) noexcept : windows_(limit.window) {}

    [[nodiscard]] static constexpr std::uint64_t most() noexcept { return ~std::uint64_t{0}; }
    [[nodiscard]] constexpr int  stamp_bits() const noexcept { return windows_.bits() + 1; }
    [[nodiscard]] constexpr grid at(instant at) const noexcept { return windows_.at(at); }

    [[nodiscard]] constexpr slot pack(const fixed_window::state& s, const grid& now) const noexcept
    {
        return {windows_.stamp(s.start, now) << 1, s.used};
    }
    [[nodiscard]] constexpr fixed_window::state unpack(const slot& from,
                                                       const grid& now) const noexcept
    {
        if (from.word == 0) return {};
        return {windows_.start(from.head >> 1, now), from.word};
    }

private:
    window_stamp windows_;
};

/// Two counts of 33 bits; the upper two bits of the previous one stand in the stamp.
template <>
class packing<sliding_window> {
public:
    constexpr explicit packing(const sliding_window& limit) noexcept : windows_(limit.window) {}

    [[nodiscard]] static constexpr std::uint64_t most() noexcept { return full; }
    [[nodiscard]] constexpr int  stamp_bits() const noexcept { return windows_.bits() + 3; }
    [[nodiscard]] constexpr grid at(instant at) const noexcept { return windows_.at(at); }

    [[nodiscard]] constexpr slot pack(const sliding_window::state& s,
                                      const grid&                  now) const noexcept
    {
        const auto current  = std::min(s.current, full);
        const auto previous = std::min(s.previous, full);
        return {windows_.stamp(s.start, now) << 3 | previous >> 31 << 1,
                current << 31 | (previous & low)};
    }
    [[nodiscard]] constexpr sliding_window::state unpack(const slot& from,
                                                         const grid& now) const noexcept
    {
        const auto upper = from.head >> 1 & 3;
        if (from.word == 0 && upper == 0) return {};
        return {windows_.start(from.head >> 3, now), from.word >> 31,
                upper << 31 | (from.word & low)};
    }

private:
    static constexpr std::uint64_t full = (std::uint64_t{1} << 33) - 1;
    static constexpr std::uint64_t low  = (std::uint64_t{1} << 31) - 1;

    window_stamp windows_;
};

/// The instant as it is, in the order of unsigned numbers.
template <>
class packing<gcra> {
public:
    constexpr explicit packing(const gcra&) noexcept {}

    [[nodiscard]] static constexpr std::uint64_t most() noexcept { return ~std::uint64_t{0}; }
    [[nodiscard]] static constexpr int           stamp_bits() noexcept { return 1; }
    [[nodiscard]] static constexpr grid          at(instant at) noexcept { return {.at = at}; }

    [[nodiscard]] static constexpr slot pack(const gcra::state& s, const grid&) noexcept
    {
        return {0, static_cast<std::uint64_t>(s.full_at.time_since_epoch().count()) ^ sign};
    }
    [[nodiscard]] static constexpr gcra::state unpack(const slot& from, const grid&) noexcept
    {
        return {instant(duration(static_cast<std::int64_t>(from.word ^ sign)))};
    }

private:
    static constexpr std::uint64_t sign = std::uint64_t{1} << 63;
};

/// Whether a slot can hold the limit.
template <policy Policy>
[[nodiscard]] constexpr bool fits_slot(const Policy& limit) noexcept
{
    return limit.capacity() <= packing<Policy>::most();
}

/// Throws std::invalid_argument for a limiter whose limit a slot cannot hold.
template <policy Policy>
void check_slot(std::string_view name, const Policy& limit)
{
    if (!fits_slot(limit))
        detail::invalid("limiter \"" + std::string(name) + "\": the limit is " +
                        std::to_string(limit.capacity()) +
                        "; a store in the process holds at most " +
                        std::to_string(packing<Policy>::most()));
}

}  // namespace weir
