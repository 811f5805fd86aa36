// SPDX-License-Identifier: BSL-1.0
#pragma once

// The slow reference: a mutex and a map. All that it can get wrong is the policy's arithmetic.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>

#include "weir/key.hpp"
#include "weir/policy.hpp"
#include "weir/store.hpp"
#include "weir/time.hpp"

namespace reference {

/// Keeps every key for ever. Thread-safe.
class slow_store {
public:
    template <weir::policy Policy>
    struct counters {
        weir::digest                                digest;
        std::map<weir::key, typename Policy::state> states = {};
    };
    template <weir::policy Policy>
    using enrolment = counters<Policy>*;

    static constexpr bool on_callers_clock = true;

    template <weir::policy Policy>
    counters<Policy>* enrol(std::string_view name, const Policy& limit, weir::outage_rule = {})
    {
        const std::lock_guard turn(mutex_);
        auto&                 known = limiters_[{std::string(name), Policy::id, limit.window}];
        if (!known)
            known = std::make_shared<counters<Policy>>(
                counters<Policy>{weir::digest({}, Policy::id, name, limit.window)});
        return static_cast<counters<Policy>*>(known.get());
    }

    template <weir::policy Policy>
    weir::key digest(const counters<Policy>* limiter, const weir::subject& who) const noexcept
    {
        return limiter->digest(who);
    }

    template <weir::policy Policy>
    bool holds(const counters<Policy>*, const Policy&) const noexcept
    {
        return true;
    }

    template <weir::policy Policy>
    weir::reply<Policy> answer(counters<Policy>* limiter, const weir::ask<Policy>& question,
                               weir::instant at)
    {
        const std::lock_guard turn(mutex_);
        auto&                 state = limiter->states[question.who];
        const auto&           limit = question.limit;
        weir::reply<Policy>   said;
        switch (question.verb) {
        case weir::verb::spend:
            said.granted = limit.spend(state, question.cost, question.times, at);
            break;
        case weir::verb::charge:
            limit.charge(state, question.cost * question.times, at);
            break;
        case weir::verb::give_back:
            limit.give_back(state, question.cost * question.times, question.lapses, at);
            break;
        case weir::verb::forget:
            state = {};
            break;
        case weir::verb::peek:
            break;
        }
        said.after = state;
        said.at    = limit.judged_at(state, at);
        return said;
    }

    weir::instant now() const noexcept { return weir::now(); }

private:
    using identity = std::tuple<std::string, int, weir::duration>;

    std::mutex                                mutex_;
    std::map<identity, std::shared_ptr<void>> limiters_;
};

}  // namespace reference
