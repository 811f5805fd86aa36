// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a limiter on a shared store answers while that store is away: its outage rule's word, or
// the word of a counter of this process that is kept warm with what the process was granted.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>

#include "weir/policy.hpp"
#include "weir/policy/fixed_window.hpp"
#include "weir/policy/gcra.hpp"
#include "weir/policy/sliding_window.hpp"
#include "weir/store.hpp"
#include "weir/store/memory.hpp"
#include "weir/time.hpp"

namespace weir::remote {

/// The limit that one of `processes` enforces alone: its share, at least one unit of what is not 0.
/// Policies of users whose share is not `limit` divided overload it beside them.
template <policy Policy>
[[nodiscard]] constexpr Policy share_of(Policy limit, std::uint32_t processes) noexcept;
[[nodiscard]] constexpr gcra share_of(const gcra& limit, std::uint32_t processes) noexcept;

/// A state of `limit` that reads as `state` does under `share`: as much left, and to who asks for
/// `cost` at `at` no shorter wait (a sliding_window may name one window more).
template <policy Policy>
[[nodiscard]] constexpr typename Policy::state shown(const Policy& limit, const Policy& share,
                                                     const typename Policy::state& state,
                                                     std::uint64_t cost, instant at) noexcept;

/// The answers of one limiter in an outage. Thread-safe.
template <policy Policy>
class outage {
public:
    /// Called for each rule that the limiter is enrolled under; `local` takes memory for `keys`
    /// counters, once. Throws std::invalid_argument if the share does not fit a memory_store.
    void prepare(std::string_view name, const Policy& limit, outage_rule rule, std::size_t keys);

    /// The store answered: `local` remembers what this process was granted. O(1).
    void heard(outage_rule rule, const ask<Policy>& question, const reply<Policy>& said) noexcept;

    /// The store did not. O(1).
    [[nodiscard]] reply<Policy> answer(outage_rule rule, const ask<Policy>& question,
                                       instant at) noexcept;

private:
    struct warm {
        warm(std::string_view name, const Policy& share, std::size_t keys)
            : store({.max_keys = keys}), counters(store.enrol(name, share))
        {
        }
        memory_store                                      store;
        typename memory_store::template enrolment<Policy> counters;
    };

    [[nodiscard]] reply<Policy> local_answer(outage_rule rule, const ask<Policy>& question,
                                             instant at) noexcept;

    std::mutex            making_;
    std::unique_ptr<warm> warm_;  // made before the first rule that reads it is handed out
};

// ---------------------------------------------------------------------------------------------

template <policy Policy>
constexpr Policy share_of(Policy limit, std::uint32_t processes) noexcept
{
    if (limit.limit > 0)
        limit.limit = std::max<std::uint64_t>(limit.limit / std::max(processes, 1U), 1);
    return limit;
}

constexpr gcra share_of(const gcra& limit, std::uint32_t processes) noexcept
{
    const auto parts = std::max(processes, 1U);
    if (limit.limit == 0 || parts == 1) return limit;
    const gcra share{.limit  = std::max<std::uint64_t>(limit.limit / parts, 1),
                     .window = limit.window,
                     .burst  = std::max<std::uint64_t>(limit.burst / parts, 1)};
    return share;
}

template <policy Policy>
constexpr typename Policy::state shown(const Policy& limit, const Policy& share,
                                       const typename Policy::state& state, std::uint64_t cost,
                                       instant at) noexcept
{
    const auto seen = share.read(state, cost, at);
    auto       made = typename Policy::state{};
    limit.charge(made,
                 seen.fits ? limit.capacity() - std::min(seen.left, limit.capacity())
                           : limit.capacity(),
                 at);
    return made;
}

constexpr fixed_window::state shown(const fixed_window& limit, const fixed_window& share,
                                    const fixed_window::state& state, std::uint64_t,
                                    instant at) noexcept
{
    auto made = state;
    limit.charge(made, limit.limit - share.limit, at);
    return made;
}

/// The other processes' shares are shown as taken in the current window. What must wait for the
/// next one is told its end, since there the two fade at different paces.
constexpr sliding_window::state shown(const sliding_window& limit, const sliding_window& share,
                                      const sliding_window::state& state, std::uint64_t cost,
                                      instant at) noexcept
{
    auto made = state;
    limit.charge(made, limit.limit - share.limit, at);
    const auto wait = share.read(state, cost, at).wait;
    if (cost <= share.limit && limit.read(made, cost, at).wait < wait)
        made.current =
            limit.limit * static_cast<std::uint64_t>(limit.window / sliding_window::tick) + 1;
    return made;
}

constexpr gcra::state shown(const gcra& limit, const gcra& share, const gcra::state& state,
                            std::uint64_t cost, instant at) noexcept
{
    const auto seen = share.read(state, cost, at);
    const auto all  = limit.interval * static_cast<std::int64_t>(limit.burst);
    const auto owed = seen.fits || !seen.ever
                          ? all - limit.interval * static_cast<std::int64_t>(seen.left)
                          : seen.wait + all - limit.interval * static_cast<std::int64_t>(cost);
    return {saturating_add(at, owed)};
}

template <policy Policy>
void outage<Policy>::prepare(std::string_view name, const Policy& limit, outage_rule rule,
                             std::size_t keys)
{
    const std::lock_guard turn(making_);
    if (rule.then != outage_rule::way::local || warm_) return;
    warm_ = std::make_unique<warm>(name, share_of(limit, rule.processes), keys);
}

template <policy Policy>
void outage<Policy>::heard(outage_rule rule, const ask<Policy>& question,
                           const reply<Policy>& said) noexcept
{
    if (rule.then != outage_rule::way::local || question.verb == verb::peek) return;
    auto told  = question;
    told.limit = share_of(question.limit, rule.processes);
    if (question.verb == verb::spend) {
        if (said.granted == 0) return;
        told.verb  = verb::charge;  // granted is granted, whatever the share
        told.times = said.granted;
    }
    warm_->store.answer(warm_->counters, told, said.at);
}

template <policy Policy>
reply<Policy> outage<Policy>::answer(outage_rule rule, const ask<Policy>& question,
                                     instant at) noexcept
{
    if (rule.then == outage_rule::way::local) return local_answer(rule, question, at);
    const bool asks  = question.verb == verb::spend || question.verb == verb::peek;
    const bool opens = rule.then == outage_rule::way::open && asks &&
                       question.cost <= question.limit.capacity();  // what never fits stays refused
    return {.granted = opens ? question.times : 0, .at = at, .basis = basis::store_unavailable};
}

template <policy Policy>
reply<Policy> outage<Policy>::local_answer(outage_rule rule, const ask<Policy>& question,
                                           instant at) noexcept
{
    auto asked  = question;
    asked.limit = share_of(question.limit, rule.processes);
    auto       said = warm_->store.answer(warm_->counters, asked, at);
    const auto next = said.granted > 0 ? 0 : std::max<std::uint64_t>(question.cost, 1);
    said.after      = shown(question.limit, asked.limit, said.after, next, at);
    said.at         = question.limit.judged_at(said.after, at);
    said.basis      = basis::local;
    return said;
}

}  // namespace weir::remote
