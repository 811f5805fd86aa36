// SPDX-License-Identifier: BSL-1.0
#pragma once

// A named policy on a store: the question that a server asks for each request.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "weir/decision.hpp"
#include "weir/enquiry.hpp"
#include "weir/key.hpp"
#include "weir/pending.hpp"
#include "weir/pending_steps.hpp"
#include "weir/policy.hpp"
#include "weir/reservation.hpp"
#include "weir/store.hpp"

namespace weir {

struct limiter_options {
    outage_rule on_outage =
        fail_closed;  ///< No effect on stores in the process: they always answer.
};

/// What one request takes.
struct spending {
    std::uint64_t cost = 1;  ///< Units; 0 looks whether one would fit and takes nothing.
};

/// Thread-safe: any number of threads may ask one limiter at once. It borrows its store, and its
/// decisions borrow its name. Make it once, not for each request. All questions take an instant as
/// their last argument where the store keeps the caller's time; without it the store's clock is
/// read. With an instant they do not compile on a store that has a clock of its own. No question
/// throws or allocates but `admit_then`; each is O(1) after the subject's digest.
template <policy Policy, class Store, observer Observer = unobserved>
    requires store_of<Store, Policy>
class limiter {
public:
    using moment = moment_of<Store>;

    /// Throws std::invalid_argument for numbers that the policy or the store cannot hold.
    limiter(std::string_view name, const Policy& limit, Store& store, limiter_options options = {},
            Observer watching = {})
        : asks_(name, limit, store, options.on_outage), watching_(std::move(watching))
    {
    }
    limiter(std::string_view, const Policy&, const Store&&, limiter_options = {},
            Observer = {}) = delete;

    /// Takes the units if they fit. A refusal changes no count.
    template <identity Who>
    [[gnu::flatten]] decision admit(const Who& who, spending what,
                                    moment_for<Store> auto at) const noexcept
    {
        return observed(digest(who), what.cost, at);
    }
    template <identity Who>
    decision admit(const Who& who, moment_for<Store> auto at) const noexcept
    {
        return admit(who, {}, at);
    }
    template <identity Who>
    decision admit(const Who& who, spending what = {}) const noexcept
    {
        return admit(who, what, present());
    }

    /// As `admit` for each of `who` in turn, with the table's cache misses overlapped. `made` must
    /// not be shorter than `who`. For stores on the caller's clock.
    [[gnu::flatten]] void
    admit_many(std::span<const subject> who, std::span<decision> made,
               std::same_as<instant> auto at) const noexcept requires Store::on_callers_clock
    {
        for (; who.size() > batch; who = who.subspan(batch), made = made.subspan(batch))
            admit_batch(who.first(batch), made, at);
        admit_batch(who, made, at);
    }
    void admit_many(std::span<const subject> who,
                    std::span<decision>      made) const noexcept requires Store::on_callers_clock
    {
        admit_many(who, made, present());
    }

    /// As `admit`, for a server that must not wait: calls `done` once with the decision, when a
    /// store that answers by callback has it, on a thread of that store's choice and perhaps before
    /// this returns; for all others at once, here. The subject is digested before this returns; the
    /// limiter must be there until `done` is called. `done` is moved and must not throw. Throws
    /// std::bad_alloc if the store has no room for it; then nothing was asked.
    template <identity Who, std::invocable<const decision&> Done>
    void admit_then(const Who& who, spending what, Done done) const;
    template <identity Who, std::invocable<const decision&> Done>
    void admit_then(const Who& who, Done done) const
    {
        admit_then(who, {}, std::move(done));
    }

    /// Whether the units would fit; takes nothing.
    template <identity Who>
    decision peek(const Who& who, spending what, moment_for<Store> auto at) const noexcept
    {
        return asks_.look(digest(who), what.cost, at);
    }
    template <identity Who>
    decision peek(const Who& who, spending what = {}) const noexcept
    {
        return peek(who, what, present());
    }

    /// Takes the units whether they fit or not, for a cost that is known afterwards.
    template <identity Who>
    void charge(const Who& who, spending what, moment_for<Store> auto at) const noexcept
    {
        if (what.cost > 0) asks_.act(verb::charge, digest(who), what.cost, instant::max(), at);
    }
    template <identity Who>
    void charge(const Who& who, spending what) const noexcept
    {
        charge(who, what, present());
    }

    /// Puts back what `made`, a decision of `admit`, took. Nothing happens for a refusal, for what
    /// no counter paid (an estimate, an outage), or once the charged window is over.
    template <identity Who>
    void give_back(const Who& who, const decision& made, moment_for<Store> auto at) const noexcept
    {
        asks_.put_back(digest(who), made, made.cost, at);
    }
    template <identity Who>
    void give_back(const Who& who, const decision& made) const noexcept
    {
        give_back(who, made, present());
    }

    /// The operator's reset of one key. False where a sketch counts it, which cannot forget, and
    /// where the store is away.
    template <identity Who>
    bool forget(const Who& who, moment_for<Store> auto at) const noexcept
    {
        return asks_.act(verb::forget, digest(who), 1, instant::max(), at).basis < basis::estimated;
    }
    template <identity Who>
    bool forget(const Who& who) const noexcept
    {
        return forget(who, present());
    }

    /// What the store has of a key, for an operator's eye. Untouched where there is nothing, and where
    /// the store is away: the basis tells.
    template <identity Who>
    [[nodiscard]] reply<Policy> inspect(const Who& who, moment_for<Store> auto at) const noexcept
    {
        return asks_.act(verb::peek, digest(who), 1, instant::max(), at);
    }
    template <identity Who>
    [[nodiscard]] reply<Policy> inspect(const Who& who) const noexcept
    {
        return inspect(who, present());
    }

    /// Takes an estimate now; `settle` on what comes back corrects it. Dropped, the estimate
    /// stands.
    template <identity Who>
    reservation<limiter> reserve(const Who& who, reserving what,
                                 moment_for<Store> auto at) const noexcept
    {
        const auto key = digest(who);
        return {*this, key, observed(key, what.estimate, at)};
    }
    template <identity Who>
    reservation<limiter> reserve(const Who& who, reserving what) const noexcept
    {
        return reserve(who, what, present());
    }

    /// An ask to hand to `admit_all`.
    template <identity Who>
    [[nodiscard]] pending operator()(const Who& who, spending what = {}) const noexcept
    {
        return {this, digest(who), what.cost, &asks_.store(), steps::all};
    }

    /// Another limit or burst, at once, and for what is counted already. False, and nothing
    /// changes, for another window, for wrong numbers, and for what the store cannot hold.
    bool set_limit(const Policy& changed) noexcept { return asks_.set_limit(changed); }

    [[nodiscard]] Policy             limit() const noexcept { return asks_.limit(); }
    [[nodiscard]] const std::string& name() const noexcept { return asks_.name(); }

    /// The key of a subject, for callers who ask several times.
    template <identity Who>
    [[nodiscard]] key digest(const Who& who) const noexcept
    {
        if constexpr (std::same_as<Who, key>) return who;
        else return asks_.digest(who);
    }

private:
    friend class reservation<limiter>;

    using steps = detail::pending_steps<limiter, Policy, Store>;
    friend steps;

    static constexpr std::size_t batch = 16;  // about the misses that a core keeps under way

    [[nodiscard]] moment present() const noexcept { return asks_.present(); }

    void tell(const decision& made) const noexcept
    {
        if constexpr (!std::same_as<Observer, unobserved>) watching_.decided(made);
    }

    /// Returned where it is built: a copy of what was just written in parts stalls the processor.
    decision observed(const key& who, std::uint64_t cost, moment at) const noexcept
    {
        if constexpr (std::same_as<Observer, unobserved>) {
            return asks_.spend(who, cost, at);
        } else {
            const auto made = asks_.spend(who, cost, at);
            tell(made);
            return made;
        }
    }

    void admit_batch(std::span<const subject> who, std::span<decision> made,
                     instant at) const noexcept
    {
        std::array<key, batch> keys;
        for (std::size_t i = 0; i < who.size(); ++i) {
            keys[i] = digest(who[i]);
            asks_.prefetch(keys[i]);
        }
        for (std::size_t i = 0; i < who.size(); ++i)
            ::new (&made[i]) decision(observed(keys[i], 1, at));
    }

    detail::enquiry<Policy, Store>         asks_;
    [[no_unique_address]] mutable Observer watching_;
};

// ---------------------------------------------------------------------------------------------

template <policy Policy, class Store, observer Observer>
    requires store_of<Store, Policy>
template <identity Who, std::invocable<const decision&> Done>
void limiter<Policy, Store, Observer>::admit_then(const Who& who, spending what, Done done) const
{
    const auto key = digest(who);
    if constexpr (answers_later<Store, Policy>) {
        const auto question = asks_.spending(key, what.cost);
        if (!asks_.never_fits(question))
            // No more than this is kept, so that a store has room for it without allocating.
            return asks_.store().answer_then(
                asks_.enrolment(), question,
                [this, limit = question.limit, cost = question.cost, verb = question.verb,
                 done = std::move(done)](const reply<Policy>& said) mutable {
                    const auto made =
                        asks_.made_of({.limit = limit, .cost = cost, .verb = verb}, said, {});
                    tell(made);
                    std::move(done)(made);
                });
    }
    const auto made = observed(key, what.cost, present());
    std::move(done)(made);
}

}  // namespace weir
