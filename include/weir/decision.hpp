// SPDX-License-Identifier: BSL-1.0
#pragma once

// What the caller gets, always: yes or no, on what ground, and until when.

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "weir/time.hpp"

namespace weir {

enum class verdict : std::uint8_t { admitted, refused };

/// What a decision rests on, the firmest first. Open for more: the values are spaced and ordered.
enum class basis : std::uint8_t {
    counted           = 0,   ///< An exact counter was asked.
    leased            = 10,  ///< Units that this process took ahead.
    remembered        = 20,  ///< A refusal that still holds, kept locally.
    estimated         = 30,  ///< A sketch: may over-count, never under-counts.
    local             = 40,  ///< The shared store is away; a local limiter decided.
    store_unavailable = 50,  ///< The store is away; the outage rule decided.
};

/// The answer to one ask. A value; thread-safe as a value is. `limiter` borrows the name from the
/// limiter that decided and must not outlive it.
struct [[nodiscard]] decision {
    weir::verdict    verdict = weir::verdict::refused;
    weir::basis      basis   = weir::basis::counted;
    std::string_view limiter = {};  ///< The name of the limiter that decided.
    std::uint64_t    cost    = 1;   ///< Units asked for.
    std::uint64_t    limit   = 0;   ///< The most units that can be admitted at once.
    std::uint64_t    left    = 0;   ///< Units still free after this decision.
    duration         window  = {};  ///< The limit's window; zero where there is none.

    /// How long to wait for the same ask to be admitted if nobody else spends: exact, zero when
    /// admitted. None when no wait is known to help (in-flight, limit 0, cost over the limit).
    std::optional<duration> retry_after = duration::zero();
    duration                reset_after = {};  ///< Until all units are back, if nobody spends.
    instant                 at          = {};  ///< The instant at which it was judged.

    constexpr explicit operator bool() const noexcept { return verdict == verdict::admitted; }

    /// This decision if it refused; else `next()`'s verdict, with the figures of the tighter of the
    /// two and the weaker basis. `next` is not called after a refusal, so it spends nothing then.
    template <std::invocable Next>
        requires std::convertible_to<std::invoke_result_t<Next>, decision>
    constexpr decision and_then(Next&& next) const;

    friend constexpr bool operator==(const decision&, const decision&) = default;
};

/// Whether `a` leaves its caller less room than `b`: a refusal before an admission, then the longer
/// wait (no known wait is the longest), then the less left.
[[nodiscard]] constexpr bool tighter(const decision& a, const decision& b) noexcept;

/// Both asked for: admitted if both were; the figures of the tighter (the first on a tie).
[[nodiscard]] constexpr decision both(const decision& first, const decision& second) noexcept;

/// Sees nothing and costs nothing.
struct unobserved {};

/// Told of each decision, on the thread that made it; must be thread-safe itself.
// clang-format off
template <class Observer>
concept observer = std::same_as<Observer, unobserved> || requires(Observer& watching, const decision& made) {
    { watching.decided(made) } noexcept;
};
// clang-format on

// ---------------------------------------------------------------------------------------------

constexpr bool tighter(const decision& a, const decision& b) noexcept
{
    if (a.verdict != b.verdict) return a.verdict == verdict::refused;
    const auto wait = [](const decision& d) { return d.retry_after.value_or(duration::max()); };
    if (wait(a) != wait(b)) return wait(a) > wait(b);
    return a.left < b.left;
}

constexpr decision both(const decision& first, const decision& second) noexcept
{
    auto tight  = tighter(second, first) ? second : first;
    tight.basis = std::max(first.basis, second.basis);
    return tight;
}

template <std::invocable Next>
    requires std::convertible_to<std::invoke_result_t<Next>, decision>
constexpr decision decision::and_then(Next&& next) const
{
    if (!*this) return *this;
    return both(*this, std::forward<Next>(next)());
}

}  // namespace weir
