// SPDX-License-Identifier: BSL-1.0
#pragma once

// A policy is the arithmetic of a limit: pure integer functions over a small state, handed the
// instant. It knows no store, no key and no clock, so every store can run the same arithmetic.

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "weir/decision.hpp"
#include "weir/time.hpp"

namespace weir {

/// What a state says to someone who asks for some units at some instant.
struct reading {
    std::uint64_t left        = 0;      ///< Units free now, before these are taken.
    bool          fits        = false;  ///< Whether the units are free now.
    bool          ever        = false;  ///< Whether they will be, if nobody else spends.
    duration      wait        = {};     ///< Until they are; meaningless unless `ever`.
    duration      reset_after = {};     ///< Until nothing is taken any more.
};

/// The units a window that a policy allows: its `limit`, or where it has none all that can be taken
/// at once.
template <class P>
[[nodiscard]] constexpr std::uint64_t limit_of(const P& numbers) noexcept
{
    if constexpr (requires { numbers.limit; }) return numbers.limit;
    else return numbers.capacity();
}

/// A policy `P` is an aggregate of its numbers with
/// - `P::id`: its number in the digest layout; 1–127 are ours, 128–255 are for users' policies;
/// - `P::state`: at most three 64-bit words of instants and counts; a default one is untouched;
/// - `limit` if it has one (see `limit_of`), `window`, `capacity()`: the most units that can be taken
///   at once;
/// - `complaint()`: what is wrong with the numbers and what is allowed; empty when all is well;
/// - `spend`: takes `times` × `cost` units, as many times as fit, and returns how many did; a state
///   that admitted none is left as it was;
/// - `charge`: takes the units whether they fit or not;
/// - `give_back`: puts units back, never above the limit, and not at or after `lapses`;
/// - `read`: what the state says to someone who asks;
/// - `judged_at`: the instant that an ask of instant `at` is judged at;
/// - `lapses`: when what an admitted decision charged stops mattering;
/// - `recovered_at`: from when on the state is as good as untouched;
/// - `worse`: a state that is at least as bad as both; `lighter`: which of two is rather the better
///   one, in some order. Both for a sketch.
// clang-format off
template <class P>
concept policy =
    std::is_trivially_copyable_v<typename P::state> && sizeof(typename P::state) <= 24 &&
    std::default_initializable<typename P::state> && std::equality_comparable<P> &&
    requires(const P& limit, typename P::state& state, const typename P::state& seen,
             std::uint64_t units, instant at, const decision& made) {
        { P::id } -> std::convertible_to<std::uint8_t>;
        { limit_of(limit) } -> std::convertible_to<std::uint64_t>;
        { limit.window } -> std::convertible_to<duration>;
        { limit.capacity() } -> std::same_as<std::uint64_t>;
        { limit.complaint() } -> std::same_as<std::string>;
        { limit.spend(state, units, units, at) } -> std::same_as<std::uint64_t>;
        { limit.charge(state, units, at) } -> std::same_as<void>;
        { limit.give_back(state, units, at, at) } -> std::same_as<void>;
        { limit.read(seen, units, at) } -> std::same_as<reading>;
        { limit.judged_at(seen, at) } -> std::same_as<instant>;
        { limit.lapses(made) } -> std::same_as<instant>;
        { limit.recovered_at(seen) } -> std::same_as<instant>;
        { limit.worse(seen, seen) } -> std::same_as<typename P::state>;
        { limit.lighter(seen, seen) } -> std::same_as<bool>;
    };
// clang-format on

/// How far ahead of an ask a state may lie before it counts as the trace of a broken clock and
/// starts over. A smaller step back is sat out: the ask is judged at the state's own start.
inline constexpr duration longest_step_back = std::chrono::hours(1);

namespace detail {

constexpr std::uint64_t add_saturating(std::uint64_t a, std::uint64_t b) noexcept
{
    return a > std::numeric_limits<std::uint64_t>::max() - b
               ? std::numeric_limits<std::uint64_t>::max()
               : a + b;
}

constexpr std::uint64_t sub_clamped(std::uint64_t a, std::uint64_t b) noexcept
{
    return a > b ? a - b : 0;
}

/// How often `cost` fits into `room`, at most `times`. The common single ask divides nothing.
constexpr std::uint64_t how_often(std::uint64_t room, std::uint64_t cost,
                                  std::uint64_t times) noexcept
{
    if (cost == 0) return times;
    if (times == 1) return room >= cost ? 1 : 0;
    return std::min(times, room / cost);
}

/// Whether a state that starts at `start`, after `at`, lies too far ahead of it to be believed.
constexpr bool too_far_ahead(instant start, instant at, duration window) noexcept
{
    const auto sat_out = static_cast<std::uint64_t>(std::max(window, longest_step_back).count());
    return ticks_between(at, start) > sat_out;
}

}  // namespace detail
}  // namespace weir
