// SPDX-License-Identifier: BSL-1.0
#pragma once

// The seam between a limiter and the place where its counters live. One ask is one atomic step
// where the counter is; everything else that a caller is told is worked out here, in plain
// arithmetic over the state that came back, so that all stores tell the same.

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>

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

    /// Of a store on its own clock: its time when it was asked.
    instant asked = {};

    /// Refused callers merged into the same ask, who retry before this one.
    std::uint64_t ahead = 0;
};

/// What a limiter does while its store cannot answer. Stores in the process always answer.
struct outage_rule {
    enum class way : std::uint8_t { closed, open, local };
    way           then      = way::closed;
    std::uint32_t processes = 1;  ///< local: this process enforces limit/processes, at least 1.

    friend constexpr bool operator==(const outage_rule&, const outage_rule&) = default;
};
inline constexpr outage_rule fail_closed{};  ///< Refuse: the default.
inline constexpr outage_rule fail_open{.then =
                                           outage_rule::way::open};  ///< Admit; the basis tells.

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
/// docs/stores.md has what a store on its own clock may offer beside: answers by callback, and
/// sets.
// clang-format off
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
// clang-format on

/// Stands where an instant would: the store keeps the time, and a caller's would not count.
struct stores_own_clock {};

/// What a question to such a store takes as its last argument.
template <class Store>
using moment_of = std::conditional_t<Store::on_callers_clock, instant, stores_own_clock>;

/// An instant, if the store goes by the caller's clock.
template <class At, class Store>
concept moment_for = std::same_as<At, moment_of<Store>>;

/// A store that answers by a callback, on its own clock: `answer_then(enrolment, ask, done)` calls
/// `done(const reply&)` once, on whatever thread has the answer, which may be the caller's. `done`
/// is moved, and may be move-only.
// clang-format off
template <class Store, class Policy>
concept answers_later = !Store::on_callers_clock &&
    requires(Store& store, typename Store::template enrolment<Policy>& limiter,
             const ask<Policy>& question, void (*done)(const reply<Policy>&)) {
        store.answer_then(limiter, question, done);
    };
// clang-format on

/// What a single caller is told of a reply to an ask of instant `asked`. `cost` is what the caller
/// asked for; 0 looks whether one unit would fit. O(1), but O(`ahead`) for a refusal that has some.
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
        : question_(question), answer_(answer), limiter_(limiter), asked_(asked),
          ahead_(answer.after), retry_at_(asked)
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

/// A decision of these parts, written where it is returned: a copy of what was just written in
/// parts would stall the processor.
template <policy Policy>
constexpr decision made_of(const ask<Policy>& question, const reply<Policy>& answer,
                           std::string_view limiter, bool admitted, const reading& seen) noexcept
{
    decision made{.verdict     = admitted ? verdict::admitted : verdict::refused,
                  .basis       = answer.basis,
                  .limiter     = limiter,
                  .cost        = question.cost,
                  .limit       = question.limit.capacity(),
                  .left        = seen.left,
                  .window      = question.limit.window,
                  .reset_after = seen.reset_after,
                  .at          = answer.at};
    if (!seen.ever) made.retry_after.reset();
    else *made.retry_after = seen.wait;
    return made;
}

/// What a store that could not answer is told as: the outage rule's word, and no known wait.
template <policy Policy>
constexpr decision unanswered(const ask<Policy>& question, const reply<Policy>& answer,
                              std::string_view limiter) noexcept
{
    const bool admitted = answer.granted > 0;
    return made_of(question, answer, limiter, admitted, {.ever = admitted});
}

/// As `told`, for a reply that has nobody ahead: one look less for the stores in the process.
template <policy Policy>
constexpr decision told_first(const ask<Policy>& question, const reply<Policy>& answer,
                              std::string_view limiter, instant asked) noexcept
{
    if (answer.basis >= basis::store_unavailable) [[unlikely]]
        return unanswered(question, answer, limiter);
    if (answer.granted > 0)
        return made_of(question, answer, limiter, true,
                       question.limit.read(answer.after, 0, asked));
    const auto seen =
        question.limit.read(answer.after, std::max<std::uint64_t>(question.cost, 1), asked);
    return made_of(question, answer, limiter, question.verb != verb::spend && seen.fits, seen);
}

/// What the last refused caller of a merged ask is told: that it fits once those `ahead` of it have
/// retried.
template <policy Policy>
[[gnu::noinline]] constexpr decision told_behind(ask<Policy> question, reply<Policy> answer,
                                                 std::string_view limiter, instant asked) noexcept
{
    merged_callers refused(question, answer, limiter, asked);
    for (auto ahead = answer.ahead; ahead > 0; --ahead) (void)refused.next();
    return refused.next();
}

}  // namespace detail

template <policy Policy>
constexpr decision told(const ask<Policy>& question, const reply<Policy>& answer,
                        std::string_view limiter, instant asked) noexcept
{
    if (answer.ahead > 0 && question.verb == verb::spend && answer.granted == 0) [[unlikely]]
        return detail::told_behind(question, answer, limiter, asked);
    return detail::told_first(question, answer, limiter, asked);
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
    const auto& limit  = question_.limit;
    const auto  last   = detail::told_first(question_, answer_, limiter_, asked_);
    auto        behind = answer_.after;
    limit.give_back(behind, question_.cost * (answer_.granted - told_), limit.lapses(last),
                    answer_.at);
    return detail::made_of(question_, answer_, limiter_, true, limit.read(behind, 0, asked_));
}

template <policy Policy>
constexpr decision merged_callers<Policy>::next_refused() noexcept
{
    const auto& limit = question_.limit;
    const auto  then  = limit.read(ahead_, question_.cost, retry_at_);
    auto        seen  = limit.read(answer_.after, question_.cost, asked_);
    seen.ever         = then.ever;
    if (then.ever) {
        retry_at_ = saturating_add(retry_at_, then.wait);
        limit.spend(ahead_, question_.cost, 1, retry_at_);
        seen.wait = saturating_sub(retry_at_, asked_);
    }
    return detail::made_of(question_, answer_, limiter_, false, seen);
}

}  // namespace weir
