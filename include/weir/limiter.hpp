// SPDX-License-Identifier: BSL-1.0
#pragma once

// A named policy on a store: the question that a server asks for each request.

#include <algorithm>
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
#include "weir/invalid.hpp"
#include "weir/key.hpp"
#include "weir/pending.hpp"
#include "weir/policy.hpp"
#include "weir/published.hpp"
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

/// Sees nothing and costs nothing.
struct unobserved {};

/// Told of each decision, on the thread that asked; must be thread-safe itself.
// clang-format off
template <class Observer>
concept observer = std::same_as<Observer, unobserved> || requires(Observer& watching, const decision& made) {
    { watching.decided(made) } noexcept;
};
// clang-format on

/// Who is counted: a subject, or a key that `digest` made of one before.
template <class Who>
concept identity = std::same_as<Who, key> || std::convertible_to<const Who&, subject>;

/// Thread-safe: any number of threads may ask one limiter at once. It borrows its store, and its
/// decisions borrow its name. Make it once, not for each request. All questions take an instant as
/// their last argument where the store keeps the caller's time; without it the store's clock is
/// read. No question throws or allocates; each is O(1) after the subject's digest.
template <policy Policy, class Store, observer Observer = unobserved>
    requires store_of<Store, Policy>
class limiter {
public:
    /// Throws std::invalid_argument for numbers that the policy or the store cannot hold.
    limiter(std::string_view name, const Policy& limit, Store& store, limiter_options options = {},
            Observer watching = {})
        : name_(name), limit_(checked(name, limit)), store_(&store),
          enrolment_(store.enrol(name, limit, options.on_outage)), watching_(std::move(watching))
    {
    }
    limiter(std::string_view, const Policy&, const Store&&, limiter_options = {},
            Observer = {}) = delete;

    /// Takes the units if they fit. A refusal changes no count.
    template <identity Who>
    [[gnu::flatten]] decision admit(const Who& who, spending what,
                                    std::same_as<instant> auto at) const noexcept
    {
        return observed(digest(who), what.cost, at);
    }
    template <identity Who>
    decision admit(const Who& who, std::same_as<instant> auto at) const noexcept
    {
        return admit(who, {}, at);
    }
    template <identity Who>
    decision admit(const Who& who, spending what = {}) const noexcept
    {
        return admit(who, what, present());
    }

    /// As `admit` for each of `who` in turn, with the table's cache misses overlapped. `made` must
    /// not be shorter than `who`.
    [[gnu::flatten]] void admit_many(std::span<const subject> who, std::span<decision> made,
                                     std::same_as<instant> auto at) const noexcept
    {
        for (; who.size() > batch; who = who.subspan(batch), made = made.subspan(batch))
            admit_batch(who.first(batch), made, at);
        admit_batch(who, made, at);
    }
    void admit_many(std::span<const subject> who, std::span<decision> made) const noexcept
    {
        admit_many(who, made, present());
    }

    /// Whether the units would fit; takes nothing.
    template <identity Who>
    decision peek(const Who& who, spending what, std::same_as<instant> auto at) const noexcept
    {
        return look(digest(who), what.cost, at);
    }
    template <identity Who>
    decision peek(const Who& who, spending what = {}) const noexcept
    {
        return peek(who, what, present());
    }

    /// Takes the units whether they fit or not, for a cost that is known afterwards.
    template <identity Who>
    void charge(const Who& who, spending what, std::same_as<instant> auto at) const noexcept
    {
        if (what.cost > 0) ask_for(verb::charge, digest(who), what.cost, instant::max(), at);
    }
    template <identity Who>
    void charge(const Who& who, spending what) const noexcept
    {
        charge(who, what, present());
    }

    /// Puts back what `made`, a decision of `admit`, took. Nothing happens for a refusal, for what
    /// no counter paid (an estimate, an outage), or once the charged window is over.
    template <identity Who>
    void give_back(const Who& who, const decision& made,
                   std::same_as<instant> auto at) const noexcept
    {
        put_back(digest(who), made, made.cost, at);
    }
    template <identity Who>
    void give_back(const Who& who, const decision& made) const noexcept
    {
        give_back(who, made, present());
    }

    /// The operator's reset of one key. False where a sketch counts it: an estimate cannot forget.
    template <identity Who>
    bool forget(const Who& who, std::same_as<instant> auto at) const noexcept
    {
        return ask_for(verb::forget, digest(who), 1, instant::max(), at).basis != basis::estimated;
    }
    template <identity Who>
    bool forget(const Who& who) const noexcept
    {
        return forget(who, present());
    }

    /// Takes an estimate now; `settle` on what comes back corrects it. Dropped, the estimate
    /// stands.
    template <identity Who>
    reservation<limiter> reserve(const Who& who, reserving what,
                                 std::same_as<instant> auto at) const noexcept
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
        return {this, digest(who), what.cost, &run_pending, &present_of};
    }

    /// Another limit or burst, at once, and for what is counted already. False, and nothing
    /// changes, for another window, for wrong numbers, and for what the store cannot hold.
    bool set_limit(const Policy& changed) noexcept
    {
        if (changed.window != limit().window || !changed.complaint().empty()) return false;
        if (!store_->holds(enrolment_, changed)) return false;
        limit_.store(changed);
        return true;
    }

    [[nodiscard]] Policy             limit() const noexcept { return limit_.load(); }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }

    /// The key of a subject, for callers who ask several times.
    template <identity Who>
    [[nodiscard]] key digest(const Who& who) const noexcept
    {
        if constexpr (std::same_as<Who, key>) return who;
        else return store_->digest(enrolment_, who);
    }

private:
    friend class reservation<limiter>;

    static constexpr std::size_t batch = 16;  // about the misses that a core keeps under way

    static const Policy& checked(std::string_view name, const Policy& limit)
    {
        if (const auto wrong = limit.complaint(); !wrong.empty())
            detail::invalid("limiter \"" + std::string(name) + "\": " + wrong);
        return limit;
    }

    [[nodiscard]] instant present() const noexcept { return store_->now(); }

    decision decide(const key& who, std::uint64_t cost, instant at) const noexcept
    {
        const ask<Policy> question{.who = {who.high, who.low}, .limit = limit(), .cost = cost};
        // Nothing to take, or what can never fit: the counter is looked at and not asked.
        if (cost == 0 || cost > question.limit.capacity()) [[unlikely]]
            return look(who, cost, at);
        return told(question, store_->answer(enrolment_, question, at), name_, at);
    }

    [[gnu::noinline]] decision look(const key& who, std::uint64_t cost, instant at) const noexcept
    {
        const ask<Policy> question{.who = who, .limit = limit(), .cost = cost, .verb = verb::peek};
        return told(question, store_->answer(enrolment_, question, at), name_, at);
    }

    void tell(const decision& made) const noexcept
    {
        if constexpr (!std::same_as<Observer, unobserved>) watching_.decided(made);
    }

    /// Returned where it is built: a copy of what was just written in parts stalls the processor.
    decision observed(const key& who, std::uint64_t cost, instant at) const noexcept
    {
        if constexpr (std::same_as<Observer, unobserved>) {
            return decide(who, cost, at);
        } else {
            const auto made = decide(who, cost, at);
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
            if constexpr (requires { store_->prefetch(enrolment_, keys[i]); })
                store_->prefetch(enrolment_, keys[i]);
        }
        for (std::size_t i = 0; i < who.size(); ++i)
            ::new (&made[i]) decision(observed(keys[i], 1, at));
    }

    reply<Policy> ask_for(verb act, const key& who, std::uint64_t cost, instant lapses,
                          instant at) const noexcept
    {
        return store_->answer(
            enrolment_,
            ask<Policy>{.who = who, .limit = limit(), .cost = cost, .verb = act, .lapses = lapses},
            at);
    }

    void put_back(const key& who, const decision& made, std::uint64_t units,
                  instant at) const noexcept
    {
        if (!made || units == 0 || made.basis >= basis::estimated) return;
        ask_for(verb::give_back, who, units, limit().lapses(made), at);
    }

    static instant present_of(const void* self) noexcept
    {
        return static_cast<const limiter*>(self)->present();
    }

    static decision run_pending(const void* self, const key& who, std::uint64_t cost,
                                pending::step act, const decision& made, instant at) noexcept
    {
        const auto& own = *static_cast<const limiter*>(self);
        if (act == pending::step::spend) return own.observed(who, cost, at);
        if (act == pending::step::undo) return own.put_back(who, made, made.cost, at), made;
        const auto seen = own.look(who, cost, at);
        if (!seen) own.tell(seen);  // what is looked at and fits is told when it is spent
        return seen;
    }

    std::string                                        name_;
    published<Policy>                                  limit_;
    Store*                                             store_;
    mutable typename Store::template enrolment<Policy> enrolment_;
    [[no_unique_address]] mutable Observer             watching_;
};

}  // namespace weir
