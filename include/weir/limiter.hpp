// SPDX-License-Identifier: BSL-1.0
#pragma once

// A named policy on a store: the question a server asks for each request.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
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
    outage_rule on_outage = fail_closed;  ///< No effect on stores in the process: they always answer.
};

/// What one request takes.
struct spending {
    std::uint64_t cost = 1;  ///< Units; 0 looks whether one would fit and takes nothing.
};

/// Sees nothing and costs nothing.
struct unobserved {};

/// Told of each decision, on the thread that asked; must be thread-safe itself.
template <class Observer>
concept observer = std::same_as<Observer, unobserved> || requires(Observer& watching, const decision& made) {
    { watching.decided(made) } noexcept;
};

/// Who is counted: a subject, or a key that `digest` made of one before.
template <class Who>
concept identity = std::same_as<Who, key> || std::convertible_to<const Who&, subject>;

/// Thread-safe: any number of threads may ask one limiter at once. It borrows its store, and its
/// decisions borrow its name. Make it once, not for each request. All questions take an instant as
/// their last argument where the store keeps the caller's time; without it the store's clock is read.
template <policy Policy, class Store, observer Observer = unobserved>
    requires store_of<Store, Policy>
class limiter {
public:
    /// Throws std::invalid_argument for numbers that the policy or the store cannot hold.
    limiter(std::string_view name, const Policy& limit, Store& store, limiter_options options = {},
            Observer watching = {});
    limiter(std::string_view, const Policy&, const Store&&, limiter_options = {}, Observer = {}) = delete;

    /// Takes the units if they fit. Never throws; a refusal changes no count. Constant time, the
    /// subject's digest apart.
    template <identity Who>
    decision admit(const Who& who, spending what = {}) const noexcept { return admit(who, what, present()); }
    template <identity Who>
    decision admit(const Who& who, std::same_as<instant> auto at) const noexcept { return admit(who, {}, at); }
    template <identity Who>
    [[gnu::flatten]] decision admit(const Who& who, spending what, std::same_as<instant> auto at) const noexcept;

    /// As `admit` for each of `who` in turn, with the table's cache misses overlapped. `made` must
    /// not be shorter than `who`.
    void admit_many(std::span<const subject> who, std::span<decision> made) const noexcept { admit_many(who, made, present()); }
    [[gnu::flatten]] void admit_many(std::span<const subject> who, std::span<decision> made, std::same_as<instant> auto at) const noexcept;

    /// Whether the units would fit; takes nothing.
    template <identity Who>
    decision peek(const Who& who, spending what = {}) const noexcept { return peek(who, what, present()); }
    template <identity Who>
    decision peek(const Who& who, spending what, std::same_as<instant> auto at) const noexcept;

    /// Takes the units whether they fit or not, for a cost that is known afterwards.
    template <identity Who>
    void charge(const Who& who, spending what) const noexcept { charge(who, what, present()); }
    template <identity Who>
    void charge(const Who& who, spending what, std::same_as<instant> auto at) const noexcept;

    /// Puts back what `made` took. Nothing happens for a refusal, for an estimate, or once the
    /// charged window is over.
    template <identity Who>
    void give_back(const Who& who, const decision& made) const noexcept { give_back(who, made, present()); }
    template <identity Who>
    void give_back(const Who& who, const decision& made, std::same_as<instant> auto at) const noexcept;

    /// The operator's reset of one key. False where a sketch counts it: an estimate cannot forget.
    template <identity Who>
    bool forget(const Who& who) const noexcept { return forget(who, present()); }
    template <identity Who>
    bool forget(const Who& who, std::same_as<instant> auto at) const noexcept;

    /// Takes an estimate now; `settle` on what comes back corrects it. Dropped, the estimate stands.
    template <identity Who>
    reservation<limiter> reserve(const Who& who, reserving what) const noexcept { return reserve(who, what, present()); }
    template <identity Who>
    reservation<limiter> reserve(const Who& who, reserving what, std::same_as<instant> auto at) const noexcept;

    /// An ask to hand to `admit_all`.
    template <identity Who>
    [[nodiscard]] pending operator()(const Who& who, spending what = {}) const noexcept;

    /// Another limit or burst, at once, and for what is counted already. False, and nothing changes,
    /// for another window, for wrong numbers, and for what the store cannot hold.
    bool set_limit(const Policy& changed) noexcept;

    [[nodiscard]] Policy             limit() const noexcept { return limit_.load(); }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }

    /// The key of a subject, for callers who ask several times.
    template <identity Who>
    [[nodiscard]] key digest(const Who& who) const noexcept;

private:
    friend class reservation<limiter>;
    using enrolment = typename Store::template enrolment<Policy>;

    [[nodiscard]] instant present() const noexcept { return store_->now(); }
    [[nodiscard]] static const Policy& checked(std::string_view name, const Policy& limit);

    decision decide(const key& who, std::uint64_t cost, instant at) const noexcept;
    [[gnu::noinline]] decision look(const key& who, std::uint64_t cost, instant at) const noexcept;
    decision observed(const key& who, std::uint64_t cost, instant at) const noexcept;
    void     put_back(const key& who, const decision& made, std::uint64_t units, instant at) const noexcept;
    static decision run_pending(const void* self, const key& who, std::uint64_t cost, pending::step act,
                                const decision& made, instant at) noexcept;

    std::string                            name_;
    published<Policy>                      limit_;
    Store*                                 store_;
    mutable enrolment                      enrolment_;
    [[no_unique_address]] mutable Observer watching_;
};

// ---------------------------------------------------------------------------------------------

template <policy Policy, class Store, observer Observer>
    requires store_of<Store, Policy>
limiter<Policy, Store, Observer>::limiter(std::string_view name, const Policy& limit, Store& store,
                                          limiter_options options, Observer watching)
    : name_(name), limit_(checked(name, limit)), store_(&store),
      enrolment_(store.enrol(name, limit, options.on_outage)), watching_(std::move(watching))
{
}

template <policy Policy, class Store, observer Observer>
    requires store_of<Store, Policy>
const Policy& limiter<Policy, Store, Observer>::checked(std::string_view name, const Policy& limit)
{
    if (const auto wrong = limit.complaint(); !wrong.empty())
        detail::invalid("limiter \"" + std::string(name) + "\": " + wrong);
    return limit;
}

template <policy Policy, class Store, observer Observer>
    requires store_of<Store, Policy>
template <identity Who>
key limiter<Policy, Store, Observer>::digest(const Who& who) const noexcept
{
    if constexpr (std::same_as<Who, key>) return who;
    else return store_->digest(enrolment_, who);
}

template <policy Policy, class Store, observer Observer>
    requires store_of<Store, Policy>
template <identity Who>
decision limiter<Policy, Store, Observer>::admit(const Who& who, spending what, std::same_as<instant> auto at) const noexcept
{
    return observed(digest(who), what.cost, at);
}

template <policy Policy, class Store, observer Observer>
    requires store_of<Store, Policy>
decision limiter<Policy, Store, Observer>::decide(const key& who, std::uint64_t cost, instant at) const noexcept
{
    const ask<Policy> question{.who = {who.high, who.low}, .limit = limit_.load(), .cost = cost};
    // Nothing to take, or what can never fit: the counter is looked at and not asked.
    if (cost == 0 || cost > question.limit.capacity()) [[unlikely]] return look(who, cost, at);
    return told(question, store_->answer(enrolment_, question, at), name_, at);
}

template <policy Policy, class Store, observer Observer>
    requires store_of<Store, Policy>
decision limiter<Policy, Store, Observer>::look(const key& who, std::uint64_t cost, instant at) const noexcept
{
    const ask<Policy> question{.who = who, .limit = limit_.load(), .cost = cost, .verb = verb::peek};
    return told(question, store_->answer(enrolment_, question, at), name_, at);
}

template <policy Policy, class Store, observer Observer>
    requires store_of<Store, Policy>
decision limiter<Policy, Store, Observer>::observed(const key& who, std::uint64_t cost, instant at) const noexcept
{
    // Returned where it is built: a copy of what was just written in parts stalls the processor.
    if constexpr (std::same_as<Observer, unobserved>) {
        return decide(who, cost, at);
    } else {
        const auto made = decide(who, cost, at);
        watching_.decided(made);
        return made;
    }
}

template <policy Policy, class Store, observer Observer>
    requires store_of<Store, Policy>
void limiter<Policy, Store, Observer>::admit_many(std::span<const subject> who, std::span<decision> made,
                                                  std::same_as<instant> auto at) const noexcept
{
    constexpr std::size_t batch = 16;  // more than the misses that a core keeps under way
    std::array<key, batch> keys;
    for (; !who.empty(); who = who.subspan(std::min(batch, who.size())),
                         made = made.subspan(std::min(batch, made.size()))) {
        const auto now = std::min(batch, who.size());
        for (std::size_t i = 0; i < now; ++i) {
            keys[i] = store_->digest(enrolment_, who[i]);
            if constexpr (requires { store_->prefetch(enrolment_, keys[i]); })
                store_->prefetch(enrolment_, keys[i]);
        }
        for (std::size_t i = 0; i < now; ++i) made[i] = observed(keys[i], 1, at);
    }
}

template <policy Policy, class Store, observer Observer>
    requires store_of<Store, Policy>
template <identity Who>
decision limiter<Policy, Store, Observer>::peek(const Who& who, spending what, std::same_as<instant> auto at) const noexcept
{
    return look(digest(who), what.cost, at);
}

template <policy Policy, class Store, observer Observer>
    requires store_of<Store, Policy>
template <identity Who>
void limiter<Policy, Store, Observer>::charge(const Who& who, spending what, std::same_as<instant> auto at) const noexcept
{
    if (what.cost == 0) return;
    store_->answer(enrolment_, {.who = digest(who), .limit = limit_.load(), .cost = what.cost, .verb = verb::charge}, at);
}

template <policy Policy, class Store, observer Observer>
    requires store_of<Store, Policy>
template <identity Who>
void limiter<Policy, Store, Observer>::give_back(const Who& who, const decision& made, std::same_as<instant> auto at) const noexcept
{
    put_back(digest(who), made, made.cost, at);
}

template <policy Policy, class Store, observer Observer>
    requires store_of<Store, Policy>
void limiter<Policy, Store, Observer>::put_back(const key& who, const decision& made, std::uint64_t units,
                                                instant at) const noexcept
{
    if (!made || units == 0 || made.basis == basis::estimated) return;
    const auto limit = limit_.load();
    store_->answer(enrolment_, {.who = who, .limit = limit, .cost = units, .verb = verb::give_back, .lapses = limit.lapses(made)}, at);
}

template <policy Policy, class Store, observer Observer>
    requires store_of<Store, Policy>
template <identity Who>
bool limiter<Policy, Store, Observer>::forget(const Who& who, std::same_as<instant> auto at) const noexcept
{
    const auto reply = store_->answer(enrolment_, {.who = digest(who), .limit = limit_.load(), .verb = verb::forget}, at);
    return reply.basis != basis::estimated;
}

template <policy Policy, class Store, observer Observer>
    requires store_of<Store, Policy>
template <identity Who>
auto limiter<Policy, Store, Observer>::reserve(const Who& who, reserving what, std::same_as<instant> auto at) const noexcept
    -> reservation<limiter>
{
    const auto key = digest(who);
    return {*this, key, observed(key, what.estimate, at)};
}

template <policy Policy, class Store, observer Observer>
    requires store_of<Store, Policy>
template <identity Who>
pending limiter<Policy, Store, Observer>::operator()(const Who& who, spending what) const noexcept
{
    return {this, digest(who), what.cost, &run_pending};
}

template <policy Policy, class Store, observer Observer>
    requires store_of<Store, Policy>
decision limiter<Policy, Store, Observer>::run_pending(const void* self, const key& who, std::uint64_t cost,
                                                       pending::step act, const decision& made, instant at) noexcept
{
    const auto& limiter = *static_cast<const weir::limiter<Policy, Store, Observer>*>(self);
    switch (act) {
        case pending::step::peek: return limiter.look(who, cost, at);
        case pending::step::spend: return limiter.decide(who, cost, at);
        case pending::step::undo: limiter.put_back(who, made, made.cost, at); break;
    }
    return made;
}

template <policy Policy, class Store, observer Observer>
    requires store_of<Store, Policy>
bool limiter<Policy, Store, Observer>::set_limit(const Policy& changed) noexcept
{
    if (changed.window != limit_.load().window || !changed.complaint().empty()) return false;
    if (!store_->holds(enrolment_, changed)) return false;
    limit_.store(changed);
    return true;
}

}  // namespace weir
