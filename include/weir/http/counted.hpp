// SPDX-License-Identifier: BSL-1.0
#pragma once

// The policies as an operator's numbers make them, and what their states say to people.

#include <algorithm>
#include <cstdint>
#include <optional>

#include "weir/http/limit_options.hpp"
#include "weir/policy/fixed_window.hpp"
#include "weir/policy/gcra.hpp"
#include "weir/policy/sliding_window.hpp"
#include "weir/time.hpp"

namespace weir::http {

/// The policy of a kind with these numbers. Without `burst` it is max for gcra, and for strict half
/// of max, rounded up; strict holds it at max.
template <policy Policy>
[[nodiscard]] Policy policy_of(limit_policy kind, std::uint64_t max, duration window,
                               std::optional<std::uint64_t> burst);

/// How many requests a state counts at an instant: a fraction where the policy estimates. Of gcra
/// those whose intervals are still to come. Pure, constant time.
[[nodiscard]] inline double counted(const fixed_window& limit, fixed_window::state state,
                                    instant at) noexcept;
[[nodiscard]] inline double counted(const sliding_window& limit, sliding_window::state state,
                                    instant at) noexcept;
[[nodiscard]] inline double counted(const gcra& limit, gcra::state state, instant at) noexcept;

// ---------------------------------------------------------------------------------------------

template <>
inline fixed_window policy_of<fixed_window>(limit_policy, std::uint64_t max, duration window,
                                            std::optional<std::uint64_t>)
{
    return {.limit = max, .window = window};
}

template <>
inline sliding_window policy_of<sliding_window>(limit_policy, std::uint64_t max, duration window,
                                                std::optional<std::uint64_t>)
{
    return {.limit = max, .window = window};
}

template <>
inline gcra policy_of<gcra>(limit_policy kind, std::uint64_t max, duration window,
                            std::optional<std::uint64_t> burst)
{
    if (max == 0) return {.limit = 0, .window = window, .burst = 0};
    if (kind != limit_policy::strict)
        return {.limit = max, .window = window, .burst = burst.value_or(max)};
    return gcra::at_most(max, window, {.burst = std::min(burst.value_or(max - max / 2), max)});
}

// To charge nothing rolls a state on to the instant.

inline double counted(const fixed_window& limit, fixed_window::state state, instant at) noexcept
{
    limit.charge(state, 0, at);
    return static_cast<double>(state.used);
}

inline double counted(const sliding_window& limit, sliding_window::state state, instant at) noexcept
{
    limit.charge(state, 0, at);
    const auto elapsed = std::max(saturating_sub(at, state.start), duration::zero());
    const auto whole   = static_cast<double>(limit.window / sliding_window::tick);
    const auto left    = whole - static_cast<double>(elapsed / sliding_window::tick);
    return static_cast<double>(state.current) + static_cast<double>(state.previous) * left / whole;
}

inline double counted(const gcra& limit, gcra::state state, instant at) noexcept
{
    limit.charge(state, 0, at);
    if (state.full_at <= at || limit.interval <= duration::zero()) return 0;
    return static_cast<double>((state.full_at - at).count()) /
           static_cast<double>(limit.interval.count());
}

}  // namespace weir::http
