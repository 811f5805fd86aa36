// SPDX-License-Identifier: BSL-1.0
#pragma once

// How a limiter takes its part in a set: what its `pending` runs, and what a store offers that
// takes sets as a whole.

#include <concepts>
#include <cstdint>
#include <span>

#include "weir/decision.hpp"
#include "weir/key.hpp"
#include "weir/pending.hpp"
#include "weir/policy.hpp"
#include "weir/store.hpp"

namespace weir {

/// A store on its own clock that takes sets as a whole. `admit_set(set)` lets each pending `stage`
/// into a `staged` of the store's, spends for all or for none, and then lets each `resolve` its
/// own. For that,
/// - `stage(enrolment, ask, staged&)` writes down one ask, a spend, and asks nobody yet;
/// - `resolve(enrolment, ask, const staged&)` is the reply to it. In a refused set that is, for who
///   refused it, granted = 0 and the state that it met; for the rest, which is resolved as not
///   spent, the state as if nothing had been taken.
/// None of them throws.
// clang-format off
template <class Store, class Policy>
concept admits_sets = !Store::on_callers_clock &&
    requires(Store& store, typename Store::template enrolment<Policy>& limiter,
             const ask<Policy>& question, typename Store::staged& slot,
             const typename Store::staged& done, std::span<const pending> set) {
        store.admit_set(set);
        store.stage(limiter, question, slot);
        { store.resolve(limiter, question, done) } -> std::same_as<reply<Policy>>;
    };
// clang-format on

namespace detail {

/// The same for all limiters on stores of that type.
template <class Store>
void admit_set_on(void* store, std::span<const pending> set) noexcept
{
    static_cast<Store*>(store)->admit_set(set);
}

/// A friend of `Limiter`.
template <class Limiter, policy Policy, class Store>
struct pending_steps {
    static const pending::steps all;

    static const Limiter& limiter_of(const void* self) noexcept
    {
        return *static_cast<const Limiter*>(self);
    }

    /// The instant of a set, if it is for this store.
    static moment_of<Store> moment([[maybe_unused]] instant at) noexcept
    {
        if constexpr (Store::on_callers_clock) return at;
        else return {};
    }

    static decision run(const void* self, const key& who, std::uint64_t cost, pending::step act,
                        const decision& made, instant at) noexcept
    {
        const auto& own = limiter_of(self);
        if (act == pending::step::spend) return own.observed(who, cost, moment(at));
        if (act == pending::step::undo)
            return own.asks_.put_back(who, made, made.cost, moment(at)), made;
        const auto seen = own.asks_.look(who, cost, moment(at));
        if (!seen) own.tell(seen);  // what is looked at and fits is told when it is spent
        return seen;
    }

    static instant present(const void* self) noexcept { return limiter_of(self).present(); }

    static bool never_fits(const void* self, std::uint64_t cost) noexcept
    {
        const auto& asks = limiter_of(self).asks_;
        return asks.never_fits(asks.looking({}, cost));
    }

    static void stage(const void* self, const key& who, std::uint64_t cost, void* slot) noexcept
    {
        const auto& asks = limiter_of(self).asks_;
        asks.store().stage(asks.enrolment(), asks.spending(who, cost),
                           *static_cast<typename Store::staged*>(slot));
    }

    static decision resolve(const void* self, const key& who, std::uint64_t cost, const void* slot,
                            bool spent) noexcept
    {
        const auto& own      = limiter_of(self);
        const auto& asks     = own.asks_;
        const auto& staged   = *static_cast<const typename Store::staged*>(slot);
        auto        question = asks.spending(who, cost);
        const auto  said     = asks.store().resolve(asks.enrolment(), question, staged);
        if (!spent) question.verb = verb::peek;
        const auto made = asks.made_of(question, said, {});
        if (spent || !made) own.tell(made);
        return made;
    }

    static constexpr pending::steps table() noexcept
    {
        pending::steps made{.run = &run};
        if constexpr (Store::on_callers_clock) made.present = &present;
        if constexpr (admits_sets<Store, Policy>) {
            made.admit_set  = &admit_set_on<Store>;
            made.never_fits = &never_fits;
            made.stage      = &stage;
            made.resolve    = &resolve;
        }
        return made;
    }
};

template <class Limiter, policy Policy, class Store>
constexpr pending::steps pending_steps<Limiter, Policy, Store>::all = table();

}  // namespace detail
}  // namespace weir
