// SPDX-License-Identifier: BSL-1.0
#pragma once

// A limiter of whatever policy on whatever store, behind one virtual call: what a configuration
// asks for is known only when it is read.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/admit_all.hpp"
#include "weir/decision.hpp"
#include "weir/enquiry.hpp"
#include "weir/extract/client.hpp"
#include "weir/http/counted.hpp"
#include "weir/http/limit_options.hpp"
#include "weir/limiter.hpp"
#include "weir/store.hpp"

namespace weir::http {

/// What is to be counted, and up to which numbers.
struct rate_plan {
    std::string                  name      = {};
    limit_policy                 policy    = limit_policy::sliding;
    duration                     window    = {};
    std::optional<std::uint64_t> burst     = {};  ///< Of all maxima; strict holds it at each.
    std::vector<std::uint64_t>   maxima    = {};  ///< For one count: a key is asked under one.
    std::vector<limit_tier>      tiers     = {};  ///< Counts of their own, at most three.
    outage_rule                  on_outage = fail_closed;
};

/// Thread-safe. Its answers borrow names from it.
class any_limiter {
public:
    static constexpr std::size_t most_tiers = 3;

    struct demand {
        const subject&      who;
        std::size_t         max   = 0;        ///< Which of the maxima.
        const weir::client* wider = nullptr;  ///< Whose tiers are asked too, all or nothing.
    };

    struct told {
        decision      made;
        double        count = 0;  ///< Of a refusal: what the count would be with this request.
        std::uint64_t max   = 0;  ///< That the decision is about.

        const std::shared_ptr<const std::string>* name = nullptr;  ///< Of that count.

        std::array<std::string_view, most_tiers + 1> refused_by = {};
        std::size_t                                  refused    = 0;  ///< How many of them.
    };

    any_limiter()                              = default;
    any_limiter(const any_limiter&)            = delete;
    any_limiter& operator=(const any_limiter&) = delete;
    virtual ~any_limiter()                     = default;

    /// A store on a clock of its own leaves the instant alone, and may be waited for.
    [[nodiscard]] virtual told admit(const demand& asked, instant at) const noexcept = 0;

    /// Calls `done` once: on the store's thread where it answers later, else here. There tiers are
    /// asked in turn, the narrowest first, so one refused by a wider has spent the narrower.
    virtual void admit_then(const demand& asked, std::function<void(const told&)> done) const = 0;

    [[nodiscard]] virtual bool answers_later() const noexcept = 0;

    /// What its counts take of this process's memory; 0 of a store that does not tell.
    [[nodiscard]] virtual std::size_t bytes() const = 0;
};

/// On `store`; what `kept` owns stays as long as the limiter. Throws std::invalid_argument for
/// numbers that policy or store cannot hold.
template <class Store>
[[nodiscard]] std::unique_ptr<any_limiter> make_limiter(const rate_plan& plan, Store& store,
                                                        std::shared_ptr<void> kept);

// ---------------------------------------------------------------------------------------------

template <policy Policy, class Store>
class limiter_on final : public any_limiter {
public:
    limiter_on(const rate_plan& plan, Store& store, std::shared_ptr<void> kept);

    [[nodiscard]] told admit(const demand& asked, instant at) const noexcept override;
    void admit_then(const demand& asked, std::function<void(const told&)> done) const override;
    [[nodiscard]] bool answers_later() const noexcept override
    {
        return weir::answers_later<Store, Policy>;
    }
    [[nodiscard]] std::size_t bytes() const override
    {
        if constexpr (requires(const Store& store) { store.bytes(); })
            return maxima_.front().asks.store().bytes();
        else return 0;
    }

private:
    using moment = moment_of<Store>;

    /// A count under one of its numbers.
    struct rung {
        rung(std::string_view name_, const Policy& limit, std::uint64_t max_, Store& store,
             outage_rule on_outage, bool in_sets)
            : name(std::make_shared<const std::string>(name_)), max(max_),
              asks(name_, limit, store, on_outage)
        {
            if (in_sets) in_set.emplace(name_, limit, store, limiter_options{on_outage});
        }
        std::shared_ptr<const std::string>          name;
        std::uint64_t                               max;
        weir::detail::enquiry<Policy, Store>        asks;
        std::optional<weir::limiter<Policy, Store>> in_set;
    };
    struct step {
        const rung* of  = nullptr;
        key         who = {};
    };
    struct round {
        std::array<step, most_tiers + 1> steps = {};
        std::size_t                      count = 0;
    };

    [[nodiscard]] round round_of(const demand& asked) const noexcept;
    [[nodiscard]] told  alone(const step& one, moment at) const noexcept;
    [[nodiscard]] told  together(const round& all, instant at) const noexcept;
    [[nodiscard]] told  said_to(const step& one, const ask<Policy>& question,
                                const reply<Policy>& said, moment at) const noexcept;
    void                next_then(const round& all, std::size_t from, const told& sofar,
                                  std::function<void(const told&)> done) const;

    static told told_of(const step& one, const decision& made) noexcept
    {
        told now{.made = made, .max = one.of->max, .name = &one.of->name};
        if (!made) now.refused_by[now.refused++] = made.limiter;
        return now;
    }
    static instant instant_of([[maybe_unused]] moment at, const reply<Policy>& said) noexcept
    {
        if constexpr (Store::on_callers_clock) return at;
        else return said.asked;
    }
    static moment moment_at([[maybe_unused]] instant at) noexcept
    {
        if constexpr (Store::on_callers_clock) return at;
        else return {};
    }

    std::shared_ptr<void> kept_;
    std::deque<rung>      maxima_;  // rungs cannot be moved
    std::deque<rung>      tiers_;
    std::vector<int>      prefixes_;
};

template <policy Policy, class Store>
limiter_on<Policy, Store>::limiter_on(const rate_plan& plan, Store& store,
                                      std::shared_ptr<void> kept)
    : kept_(std::move(kept))
{
    const auto in_sets = !plan.tiers.empty();
    for (const auto max : plan.maxima)
        maxima_.emplace_back(plan.name,
                             policy_of<Policy>(plan.policy, max, plan.window, plan.burst), max,
                             store, plan.on_outage, in_sets);
    for (const auto& tier : plan.tiers) {
        tiers_.emplace_back(plan.name + '/' + std::to_string(tier.prefix),
                            policy_of<Policy>(plan.policy, tier.max, plan.window, std::nullopt),
                            tier.max, store, plan.on_outage, in_sets);
        prefixes_.push_back(tier.prefix);
    }
}

template <policy Policy, class Store>
auto limiter_on<Policy, Store>::round_of(const demand& asked) const noexcept -> round
{
    const auto& base = maxima_[asked.max];
    round       all{.steps = {step{&base, base.asks.digest(asked.who)}}, .count = 1};
    if (asked.wider == nullptr) return all;
    for (std::size_t i = 0; i < tiers_.size(); ++i)
        all.steps[all.count++] = {&tiers_[i],
                                  tiers_[i].asks.digest(asked.wider->tier(prefixes_[i]))};
    return all;
}

template <policy Policy, class Store>
auto limiter_on<Policy, Store>::admit(const demand& asked, instant at) const noexcept -> told
{
    if (asked.wider != nullptr && !tiers_.empty()) return together(round_of(asked), at);
    const auto& base = maxima_[asked.max];
    return alone({&base, base.asks.digest(asked.who)}, moment_at(at));
}

/// What never fits is looked at and not asked, as by a limiter.
template <policy Policy, class Store>
auto limiter_on<Policy, Store>::alone(const step& one, moment at) const noexcept -> told
{
    const auto& asks     = one.of->asks;
    const auto  question = asks.spending(one.who, 1);
    if (asks.never_fits(question)) [[unlikely]] {
        auto now  = told_of(one, asks.look(one.who, 1, at));
        now.count = 1;
        return now;
    }
    if constexpr (Store::on_callers_clock)
        return said_to(one, question, asks.store().answer(asks.enrolment(), question, at), at);
    else return said_to(one, question, asks.store().answer(asks.enrolment(), question), at);
}

template <policy Policy, class Store>
auto limiter_on<Policy, Store>::said_to(const step& one, const ask<Policy>& question,
                                        const reply<Policy>& said, moment at) const noexcept -> told
{
    auto now = told_of(one, one.of->asks.made_of(question, said, at));
    if (!now.made) now.count = counted(question.limit, said.after, instant_of(at, said)) + 1;
    return now;
}

/// The count of a refusal comes from a second look: a set tells decisions, not states.
template <policy Policy, class Store>
auto limiter_on<Policy, Store>::together(const round& all, instant at) const noexcept -> told
{
    const auto  ask  = [&](std::size_t i) { return (*all.steps[i].of->in_set)(all.steps[i].who); };
    const auto  made = all.count == 2   ? admit_all({ask(0), ask(1)}, at)
                       : all.count == 3 ? admit_all({ask(0), ask(1), ask(2)}, at)
                                        : admit_all({ask(0), ask(1), ask(2), ask(3)}, at);
    const auto* told_by = &all.steps[0];
    for (std::size_t i = 1; i < all.count; ++i)
        if (made.limiter == *all.steps[i].of->name) told_by = &all.steps[i];

    auto now = told_of(*told_by, made);
    if (made) return now;
    now.refused = 0;
    for (const auto who : made.refused_by()) now.refused_by[now.refused++] = who;
    now.made.limiter = *told_by->of->name;
    const auto& asks = told_by->of->asks;
    const auto  said = asks.act(verb::peek, told_by->who, 1, instant::max(), moment_at(at));
    now.count        = counted(asks.limit(), said.after, instant_of(moment_at(at), said)) + 1;
    return now;
}

template <policy Policy, class Store>
void limiter_on<Policy, Store>::admit_then(const demand&                    asked,
                                           std::function<void(const told&)> done) const
{
    if constexpr (weir::answers_later<Store, Policy>)
        next_then(round_of(asked), 0, {}, std::move(done));
    else if constexpr (Store::on_callers_clock) done(admit(asked, maxima_.front().asks.present()));
    else done(admit(asked, {}));
}

/// The tighter of what was said so far is told, as by `both`.
template <policy Policy, class Store>
void limiter_on<Policy, Store>::next_then(const round& all, std::size_t from, const told& sofar,
                                          std::function<void(const told&)> done) const
{
    const auto go_on = [this, all, from, sofar, done = std::move(done)](const told& now) {
        const auto& tight = from == 0 || tighter(now.made, sofar.made) ? now : sofar;
        if (!now.made || from + 1 == all.count) return done(now.made ? tight : now);
        next_then(all, from + 1, tight, done);
    };
    const auto& one      = all.steps[from];
    const auto& asks     = one.of->asks;
    const auto  question = asks.spending(one.who, 1);
    if (asks.never_fits(question)) return go_on(alone(one, {}));
    if constexpr (weir::answers_later<Store, Policy>)
        asks.store().answer_then(asks.enrolment(), question,
                                 [this, one, question, go_on](const reply<Policy>& said) {
                                     go_on(said_to(one, question, said, {}));
                                 });
}

template <class Store>
std::unique_ptr<any_limiter> make_limiter(const rate_plan& plan, Store& store,
                                          std::shared_ptr<void> kept)
{
    switch (plan.policy) {
    case limit_policy::sliding:
        return std::make_unique<limiter_on<sliding_window, Store>>(plan, store, std::move(kept));
    case limit_policy::fixed:
        return std::make_unique<limiter_on<fixed_window, Store>>(plan, store, std::move(kept));
    case limit_policy::gcra:
    case limit_policy::strict:
        break;
    }
    return std::make_unique<limiter_on<gcra, Store>>(plan, store, std::move(kept));
}

}  // namespace weir::http
