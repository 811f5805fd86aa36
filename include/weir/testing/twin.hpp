// SPDX-License-Identifier: BSL-1.0
#pragma once

// A counter asked twice: in a store, and by plain arithmetic. Where the two differ, the store errs.

#include <cstdint>
#include <string_view>

#include "weir/decision.hpp"
#include "weir/key.hpp"
#include "weir/policy.hpp"
#include "weir/store.hpp"
#include "weir/time.hpp"

namespace weir::testing {

/// One key of a limiter on a store and, beside it, the state that the policy itself makes of the
/// same asks. Borrows the store. Not thread-safe.
template <policy Policy, class Store>
    requires store_of<Store, Policy>
class twin {
public:
    twin(Store& store, std::string_view name, const Policy& limit,
         std::string_view who = "somebody")
        : store_(&store), limit_(limit), enrolment_(store.enrol(name, limit, fail_closed)),
          who_(store.digest(enrolment_, who))
    {
    }

    /// Asks both; true if all who asked are told the same, the basis apart. Key and limit of the
    /// question are filled in. A store on its own clock sets the instant itself.
    bool agree(ask<Policy> question, instant at);

    bool spend(std::uint64_t cost, instant at, std::uint64_t times = 1)
    {
        return agree({.cost = cost, .times = times}, at);
    }
    bool peek(instant at) { return agree({.verb = verb::peek}, at); }

    /// Asks the store alone, under its own limit.
    reply<Policy> answer(ask<Policy> question, instant at);

    /// From now on the limit is this one; the window must stay.
    void change(const Policy& limit) { limit_ = limit; }

    /// What the last caller was told by the store.
    const decision& made() const { return made_; }

    [[nodiscard]] key who() const { return who_; }

private:
    reply<Policy> by_policy(const ask<Policy>& question, instant at);
    bool          told_alike(const ask<Policy>& question, const reply<Policy>& said,
                             const reply<Policy>& due, instant asked);

    Store*                                     store_;
    Policy                                     limit_;
    typename Store::template enrolment<Policy> enrolment_;
    key                                        who_;
    typename Policy::state                     state_ = {};
    decision                                   made_  = {};
};

// ---------------------------------------------------------------------------------------------

template <policy Policy, class Store>
    requires store_of<Store, Policy>
bool twin<Policy, Store>::agree(ask<Policy> question, instant at)
{
    question.limit   = limit_;
    const auto said  = answer(question, at);
    const auto asked = Store::on_callers_clock ? at : said.asked;
    const auto due   = by_policy(question, asked);
    if (question.verb != verb::spend) question.verb = verb::peek, question.times = 1;
    return said.granted == due.granted && told_alike(question, said, due, asked);
}

template <policy Policy, class Store>
    requires store_of<Store, Policy>
bool twin<Policy, Store>::told_alike(const ask<Policy>& question, const reply<Policy>& said,
                                     const reply<Policy>& due, instant asked)
{
    merged_callers ours(question, said, {}, asked);
    merged_callers own(question, due, {}, asked);
    bool           alike = true;
    for (auto callers = question.times; callers > 0; --callers) {
        made_ = question.verb == verb::spend ? ours.next() : told(question, said, {}, asked);
        auto expected  = question.verb == verb::spend ? own.next() : told(question, due, {}, asked);
        expected.basis = made_.basis;
        alike &= made_ == expected;
    }
    return alike;
}

template <policy Policy, class Store>
    requires store_of<Store, Policy> reply<Policy> twin<Policy, Store>::answer(ask<Policy> question,
                                                                               instant     at)
    {
        question.who   = who_;
        question.limit = limit_;
        if constexpr (Store::on_callers_clock) return store_->answer(enrolment_, question, at);
        else return store_->answer(enrolment_, question);
    }

template <policy Policy, class Store>
    requires store_of<Store, Policy> reply<Policy>
    twin<Policy, Store>::by_policy(const ask<Policy>& question, instant at)
    {
        const auto    units = question.cost * question.times;
        reply<Policy> due;
        switch (question.verb) {
        case verb::spend:
            due.granted = limit_.spend(state_, question.cost, question.times, at);
            break;
        case verb::charge:
            limit_.charge(state_, units, at);
            break;
        case verb::give_back:
            limit_.give_back(state_, units, question.lapses, at);
            break;
        case verb::forget:
            state_ = {};
            break;
        case verb::peek:
            break;
        }
        due.after = state_;
        due.at    = limit_.judged_at(state_, at);
        return due;
    }

}  // namespace weir::testing
