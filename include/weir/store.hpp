// SPDX-License-Identifier: BSL-1.0
#pragma once

// The seam between a limiter and the place where its counters live. One ask is one atomic step
// where the counter is; everything else that a caller is told is worked out here, in plain
// arithmetic over the state that came back, so that all stores tell the same.

#include <concepts>
#include <cstdint>
#include <string_view>

#include "weir/decision.hpp"
#include "weir/key.hpp"
#include "weir/policy.hpp"
#include "weir/time.hpp"

namespace weir {

/// What a store is asked to do with a counter.
enum class verb : std::uint8_t {
    spend,      ///< Take `cost` units, `times` times, as often as they fit.
    charge,     ///< Take them whether they fit or not: settles a cost that was known later.
    give_back,  ///< Put them back, unless `lapses` has come or another window began.
    peek,       ///< Look; change nothing.
    forget,     ///< As if the key had never been seen.
};

/// A question to a store. Plain data that fits a statement or a packet.
template <policy Policy>
struct ask {
    key           who    = {};
    Policy        limit  = {};
    std::uint64_t cost   = 1;
    std::uint64_t times  = 1;  ///< Callers merged into this ask; each wants `cost`.
    weir::verb    verb   = weir::verb::spend;
    instant       lapses = instant::max();  ///< give_back: at or after it nothing happens.
};

/// The answer: how many of the merged callers were granted, and the state after them.
template <policy Policy>
struct reply {
    std::uint64_t          granted = 0;  ///< 0 for every verb but spend.
    typename Policy::state after   = {};
    instant                at      = {};  ///< What the ask was judged at.
    weir::basis            basis   = weir::basis::counted;
};

/// What a limiter does while its store cannot answer. Stores in the process always answer.
struct outage_rule {
    enum class way : std::uint8_t { closed, open, local };
    way           then      = way::closed;
    std::uint32_t processes = 1;  ///< local: this process enforces limit/processes, at least 1.

    friend constexpr bool operator==(const outage_rule&, const outage_rule&) = default;
};
inline constexpr outage_rule fail_closed{};                                ///< Refuse: the default.
inline constexpr outage_rule fail_open{.then = outage_rule::way::open};    ///< Admit; the basis tells.

/// A warm limiter of this process takes over with its share of the limit.
[[nodiscard]] constexpr outage_rule local(std::uint32_t processes) noexcept
{
    return {.then = outage_rule::way::local, .processes = processes};
}

/// A store keeps states by key and runs policies on them.
/// - `enrol` makes a limiter known and returns what `answer` needs to find its counters. The same
///   name, kind of policy and window meet the same counters again. Throws std::invalid_argument for
///   a limit that the store cannot hold; `holds` says so beforehand.
/// - `digest` turns a subject into the key of that limiter.
/// - `answer` is one atomic step and never throws. A store on the caller's clock takes the instant.
template <class S, class Policy>
concept store_of = policy<Policy> &&
                   requires(S& store, typename S::template enrolment<Policy>& limiter,
                            const ask<Policy>& question, const subject& who, std::string_view name,
                            const Policy& limit, outage_rule rule) {
                       { store.enrol(name, limit, rule) } -> std::same_as<typename S::template enrolment<Policy>>;
                       { store.digest(limiter, who) } -> std::same_as<key>;
                       { store.holds(limiter, limit) } -> std::same_as<bool>;
                       { S::on_callers_clock } -> std::convertible_to<bool>;
                   } &&
                   ((S::on_callers_clock &&
                     requires(S& store, typename S::template enrolment<Policy>& limiter,
                              const ask<Policy>& question, instant at) {
                         { store.now() } -> std::same_as<instant>;
                         { store.answer(limiter, question, at) } -> std::same_as<reply<Policy>>;
                     }) ||
                    (!S::on_callers_clock &&
                     requires(S& store, typename S::template enrolment<Policy>& limiter,
                              const ask<Policy>& question) {
                         { store.answer(limiter, question) } -> std::same_as<reply<Policy>>;
                     }));

/// What a single caller is told of a reply to an ask of instant `asked`. `cost` is what the caller
/// asked for; 0 looks whether one unit would fit.
template <policy Policy>
[[nodiscard]] constexpr decision told(const ask<Policy>& question, const reply<Policy>& answer,
                                      std::string_view limiter, instant asked) noexcept;

/// What the callers merged into one ask are told, one after the other: the granted ones as if they
/// had come in turn, then the refused ones, each told when it fits if those before it retry first.
/// O(1) for each; not thread-safe.
template <policy Policy>
class merged_callers {
public:
    constexpr merged_callers(const ask<Policy>& question, const reply<Policy>& answer,
                             std::string_view limiter, instant asked) noexcept
        : question_(question), answer_(answer), limiter_(limiter), asked_(asked), ahead_(answer.after),
          retry_at_(asked)
    {
    }

    [[nodiscard]] constexpr decision next() noexcept;

private:
    constexpr decision next_granted() noexcept;
    constexpr decision next_refused() noexcept;

    ask<Policy>            question_;
    reply<Policy>          answer_;
    std::string_view       limiter_;
    instant                asked_;
    typename Policy::state ahead_;     // once those who were refused before have retried
    instant                retry_at_;  // when the last of them did
    std::uint64_t          told_ = 0;
};

// ---------------------------------------------------------------------------------------------

namespace detail {

/// The parts of a decision that do not depend on the state.
template <policy Policy>
constexpr decision blank(const ask<Policy>& question, const reply<Policy>& answer,
                         std::string_view limiter) noexcept
{
    return {.basis   = answer.basis,
            .limiter = limiter,
            .cost    = question.cost,
            .limit   = question.limit.capacity(),
            .window  = question.limit.window,
            .at      = answer.at};
}

/// What someone is told who was granted their units and found `after` behind them.
template <policy Policy>
constexpr decision granted(const ask<Policy>& question, const reply<Policy>& answer,
                           const typename Policy::state& after, std::string_view limiter, instant asked) noexcept
{
    auto       made = blank(question, answer, limiter);
    const auto seen = question.limit.read(after, 0, asked);
    made.verdict     = verdict::admitted;
    made.left        = seen.left;
    made.reset_after = seen.reset_after;
    return made;
}

/// What someone is told who looks at `state` without taking anything, or was refused by it.
template <policy Policy>
constexpr decision looked(const ask<Policy>& question, const reply<Policy>& answer, std::string_view limiter,
                          instant asked) noexcept
{
    auto       made  = blank(question, answer, limiter);
    const auto seen  = question.limit.read(answer.after, std::max<std::uint64_t>(question.cost, 1), asked);
    made.verdict     = seen.fits ? verdict::admitted : verdict::refused;
    made.left        = seen.left;
    made.retry_after = seen.retry_after;
    made.reset_after = seen.reset_after;
    return made;
}

/// The refusal of a store that had no answer: no wait is known to help.
template <policy Policy>
constexpr decision unanswered(const ask<Policy>& question, const reply<Policy>& answer,
                              std::string_view limiter) noexcept
{
    auto made        = blank(question, answer, limiter);
    made.verdict     = answer.granted > 0 ? verdict::admitted : verdict::refused;
    made.retry_after = answer.granted > 0 ? std::optional(duration::zero()) : std::nullopt;
    return made;
}

}  // namespace detail

template <policy Policy>
constexpr decision told(const ask<Policy>& question, const reply<Policy>& answer, std::string_view limiter,
                        instant asked) noexcept
{
    if (answer.basis >= basis::store_unavailable) return detail::unanswered(question, answer, limiter);
    if (answer.granted > 0) return detail::granted(question, answer, answer.after, limiter, asked);
    auto made = detail::looked(question, answer, limiter, asked);
    // A state read a moment later may have room again; what was refused stays refused.
    if (question.verb == verb::spend) made.verdict = verdict::refused;
    return made;
}

template <policy Policy>
constexpr decision merged_callers<Policy>::next() noexcept
{
    if (answer_.basis >= basis::store_unavailable)
        return detail::unanswered(question_, answer_, limiter_);
    return told_++ < answer_.granted ? next_granted() : next_refused();
}

template <policy Policy>
constexpr decision merged_callers<Policy>::next_granted() noexcept
{
    const auto last   = detail::granted(question_, answer_, answer_.after, limiter_, asked_);
    auto       behind = answer_.after;
    question_.limit.give_back(behind, question_.cost * (answer_.granted - told_), question_.limit.lapses(last),
                              answer_.at);
    return detail::granted(question_, answer_, behind, limiter_, asked_);
}

template <policy Policy>
constexpr decision merged_callers<Policy>::next_refused() noexcept
{
    const auto now  = question_.limit.read(answer_.after, question_.cost, asked_);
    const auto then = question_.limit.read(ahead_, question_.cost, retry_at_);
    auto       made = detail::blank(question_, answer_, limiter_);
    made.verdict     = verdict::refused;
    made.left        = now.left;
    made.reset_after = now.reset_after;
    made.retry_after = std::nullopt;
    if (!then.retry_after) return made;

    retry_at_ = saturating_add(retry_at_, *then.retry_after);
    question_.limit.spend(ahead_, question_.cost, 1, retry_at_);
    made.retry_after = saturating_sub(retry_at_, asked_);
    return made;
}

}  // namespace weir
