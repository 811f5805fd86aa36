// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a limiter asks its store, and what it makes of the reply: a limiter as nobody watches it,
// asked by key.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/decision.hpp"
#include "weir/invalid.hpp"
#include "weir/key.hpp"
#include "weir/policy.hpp"
#include "weir/published.hpp"
#include "weir/store.hpp"
#include "weir/time.hpp"

namespace weir::detail {

/// Thread-safe. It borrows the store, and its decisions borrow its name. Each question is O(1).
template <policy Policy, class Store>
    requires store_of<Store, Policy>
class enquiry {
public:
    using moment = moment_of<Store>;

    /// Throws std::invalid_argument for numbers that the policy or the store cannot hold.
    enquiry(std::string_view name, const Policy& limit, Store& store, outage_rule on_outage)
        : name_(name), limit_(checked(name, limit)), store_(&store),
          enrolment_(store.enrol(name, limit, on_outage))
    {
    }

    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] Policy             limit() const noexcept { return limit_.load(); }
    [[nodiscard]] Store&             store() const noexcept { return *store_; }
    [[nodiscard]] auto&              enrolment() const noexcept { return enrolment_; }

    bool set_limit(const Policy& changed) noexcept
    {
        if (changed.window != limit().window || !changed.complaint().empty()) return false;
        if (!store_->holds(enrolment_, changed)) return false;
        limit_.store(changed);
        return true;
    }

    [[nodiscard]] key digest(const subject& who) const noexcept
    {
        return store_->digest(enrolment_, who);
    }

    void prefetch(const key& who) const noexcept
    {
        if constexpr (requires { store_->prefetch(enrolment_, who); })
            store_->prefetch(enrolment_, who);
    }

    [[nodiscard]] moment present() const noexcept
    {
        if constexpr (Store::on_callers_clock) return store_->now();
        else return {};
    }

    /// Takes the units if they fit.
    decision spend(const key& who, std::uint64_t cost, moment at) const noexcept
    {
        const ask<Policy> question{.who = {who.high, who.low}, .limit = limit(), .cost = cost};
        if (cost == 0 || cost > question.limit.capacity()) [[unlikely]]
            return spend_nothing(who, cost, at);
        // Written out: each function between here and the store cost an admission two instructions.
        if constexpr (Store::on_callers_clock)
            return told_first(question, store_->answer(enrolment_, question, at), name_, at);
        else return made_of(question, store_->answer(enrolment_, question), at);
    }

    /// Whether they fit.
    decision look(const key& who, std::uint64_t cost, moment at) const noexcept
    {
        return judged(looking(who, cost), at);
    }

    /// All that is not told to a caller.
    reply<Policy> act(verb what, const key& who, std::uint64_t cost, instant lapses,
                      moment at) const noexcept
    {
        return answer({.who = who, .limit = limit(), .cost = cost, .verb = what, .lapses = lapses},
                      at);
    }

    /// Nothing, for what no counter paid.
    void put_back(const key& who, const decision& made, std::uint64_t units,
                  moment at) const noexcept
    {
        if (!made || units == 0 || made.basis >= basis::estimated) return;
        act(verb::give_back, who, units, limit().lapses(made), at);
    }

    /// The question of a look, and that of a `spend` whose answer comes later.
    [[nodiscard]] ask<Policy> looking(const key& who, std::uint64_t cost) const noexcept
    {
        return {.who = who, .limit = limit(), .cost = cost, .verb = verb::peek};
    }
    [[nodiscard]] ask<Policy> spending(const key& who, std::uint64_t cost) const noexcept
    {
        auto question = looking(who, cost);
        if (cost > 0) question.verb = verb::spend;
        return question;
    }

    /// What the caller is told, also of an answer that came later.
    decision made_of(const ask<Policy>& question, const reply<Policy>& said,
                     [[maybe_unused]] moment at) const noexcept
    {
        if constexpr (Store::on_callers_clock) return told_first(question, said, name_, at);
        else return told(question, said, name_, said.asked);
    }

    /// Whether no wait helps: limit 0, or a cost over the limit.
    [[nodiscard]] static bool never_fits(const ask<Policy>& question) noexcept
    {
        return std::max<std::uint64_t>(question.cost, 1) > question.limit.capacity();
    }

private:
    static const Policy& checked(std::string_view name, const Policy& limit)
    {
        if (const auto wrong = limit.complaint(); !wrong.empty())
            invalid("limiter \"" + std::string(name) + "\": " + wrong);
        return limit;
    }

    reply<Policy> answer(const ask<Policy>& question, [[maybe_unused]] moment at) const noexcept
    {
        if constexpr (Store::on_callers_clock) return store_->answer(enrolment_, question, at);
        else return store_->answer(enrolment_, question);
    }

    /// Nothing to take, or what can never fit: the counter is looked at and not asked. Unless the
    /// limit was raised meanwhile: a look that fits would admit for nothing.
    [[gnu::noinline]] decision spend_nothing(const key& who, std::uint64_t cost,
                                             moment at) const noexcept
    {
        auto question = spending(who, cost);
        if (never_fits(question)) question.verb = verb::peek;
        return judged(question, at);
    }

    [[gnu::noinline]] decision judged(const ask<Policy>& question, moment at) const noexcept
    {
        if constexpr (!Store::on_callers_clock)
            if (never_fits(question)) return never(question);
        return made_of(question, answer(question, at), at);
    }

    /// What never fits needs no round trip: it is told of an untouched counter.
    decision never(const ask<Policy>& question) const noexcept
    {
        const auto at = now();
        return told(question, {.at = at}, name_, at);
    }

    std::string                                        name_;
    published<Policy>                                  limit_;
    Store*                                             store_;
    mutable typename Store::template enrolment<Policy> enrolment_;
};

}  // namespace weir::detail
