// SPDX-License-Identifier: BSL-1.0
#pragma once

// What the store knows of one limiter, and how an ask of it becomes a row and a reply: a part of
// the store, not for users.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "weir/key.hpp"
#include "weir/policy.hpp"
#include "weir/postgres/spending.hpp"
#include "weir/remote/known_keys.hpp"
#include "weir/remote/lease.hpp"
#include "weir/remote/memo.hpp"
#include "weir/remote/outage.hpp"
#include "weir/remote/row.hpp"
#include "weir/remote/seat.hpp"
#include "weir/store.hpp"
#include "weir/time.hpp"

namespace weir::postgres {

/// The statements of a store, each made once: rows with one of them share a trip. Thread-safe;
/// what it returns stays where it is.
class manners {
public:
    explicit manners(const std::string& schema);

    const remote::manner& look() const noexcept { return look_; }
    const remote::manner& forget() const noexcept { return forget_; }
    const remote::manner& asks_of(std::string_view policy);

private:
    std::string                schema_;
    remote::manner             look_, forget_;
    std::mutex                 mutex_;
    std::deque<remote::manner> asks_;
};

struct counters_options {
    std::string_view secret     = {};
    std::size_t      remembered = 8'192;
    duration         longest    = std::chrono::seconds(1);
};

/// An ask under way.
template <policy Policy>
struct call {
    ask<Policy>   question = {};
    instant       sent     = {};  ///< weir::now() before it was.
    std::uint64_t ahead    = 0;   ///< Asks more that it takes along, for a lease.
};

/// Thread-safe.
template <policy Policy>
class counters {
public:
    using plain = plain_policy<Policy>;

    counters(const counters_options& options, std::string_view name, const Policy& limit,
             manners& statements)
        : outage(), keys_(options.secret, Policy::id, name, limit.window, options.remembered),
          memo_(options.remembered, options.longest), leases_(options.remembered),
          look_(&statements.look()), forget_(&statements.forget()),
          asks_(&statements.asks_of(spending<plain>::name))
    {
    }

    [[nodiscard]] key key_of(const subject& who) const noexcept { return keys_(who); }

    /// What is known without a trip: a refusal that still holds, or a unit taken ahead.
    [[nodiscard]] std::optional<reply<Policy>> at_hand(const ask<Policy>& question, instant here,
                                                       outage_rule rule) noexcept;

    [[nodiscard]] std::optional<reply<Policy>> refusal(const ask<Policy>& question,
                                                       instant            here) const noexcept
    {
        return memo_.refusal(question, here);
    }

    /// The row to send for a question that is not at hand.
    [[nodiscard]] remote::row row_of(const ask<Policy>& question) const noexcept;

    /// The same, and what is noted of it here.
    [[nodiscard]] call<Policy> begin(const ask<Policy>& question, instant here,
                                     remote::row& row) noexcept;

    /// What the seat came back with. Unanswered, the outage rule decides.
    [[nodiscard]] reply<Policy> end(const call<Policy>& begun, outage_rule rule,
                                    const remote::seat& seat) noexcept;

    [[nodiscard]] reply<Policy> unanswered(const ask<Policy>& question, outage_rule rule,
                                           instant at) noexcept;

    /// What one caller of a row is told, who is answered `seat.place` callers later than the first.
    [[nodiscard]] static reply<Policy> read(const ask<Policy>& question, std::uint64_t times,
                                            const remote::seat& seat) noexcept;

    /// Of the replies of a set: what was refused, and granted as well.
    void heard(const ask<Policy>& question, outage_rule rule, const reply<Policy>& said) noexcept;

    [[nodiscard]] std::size_t bytes() const noexcept
    {
        return sizeof(*this) + keys_.bytes() + memo_.bytes() + leases_.bytes();
    }

    remote::outage<plain> outage;

private:
    static std::uint64_t granted_of(const ask<Policy>&     question,
                                    const remote::outcome& said) noexcept;

    /// For policies whose units cannot be taken ahead.
    struct no_leases {
        explicit no_leases(std::size_t) noexcept {}
        [[nodiscard]] static std::size_t bytes() noexcept { return 0; }
    };
    template <class P>
    struct leases_of {
        using type = no_leases;
    };
    template <leasable P>
    struct leases_of<leased<P>> {
        using type = remote::leases<leased<P>>;
    };
    static constexpr bool leases = requires { typename Policy::plain; };

    remote::known_keys               keys_;
    remote::memo<Policy>             memo_;
    typename leases_of<Policy>::type leases_;
    const remote::manner*            look_;
    const remote::manner*            forget_;
    const remote::manner*            asks_;
};

// ---------------------------------------------------------------------------------------------

template <policy Policy>
std::optional<reply<Policy>> counters<Policy>::at_hand(const ask<Policy>& question, instant here,
                                                       outage_rule rule) noexcept
{
    if constexpr (leases)
        if (auto taken = leases_.take(question, here)) {
            outage.heard(rule, plain_ask(question), {.granted = taken->granted, .at = taken->at});
            return taken;
        }
    return refusal(question, here);
}

template <policy Policy>
remote::row counters<Policy>::row_of(const ask<Policy>& question) const noexcept
{
    auto made   = postgres::row_of(question);
    made.manner = question.verb == verb::peek     ? look_
                  : question.verb == verb::forget ? forget_
                                                  : asks_;
    return made;
}

template <policy Policy>
call<Policy> counters<Policy>::begin(const ask<Policy>& question, instant here,
                                     remote::row& row) noexcept
{
    call<Policy> made{.question = question, .sent = here};
    const bool   forgets = question.verb == verb::forget;
    if (forgets || question.verb == verb::give_back) memo_.drop(question.who);
    row = row_of(question);
    if constexpr (leases) {
        if (forgets) leases_.drop(question.who);
        made.ahead = leases_.ahead(question, question.limit.units, here);
        row.times += static_cast<std::int64_t>(made.ahead);
    }
    return made;
}

template <policy Policy>
void counters<Policy>::heard(const ask<Policy>& question, outage_rule rule,
                             const reply<Policy>& said) noexcept
{
    memo_.heard(question, said, weir::now());
    outage.heard(rule, plain_ask(question),
                 {.granted = said.granted, .after = said.after, .at = said.at});
}

template <policy Policy>
reply<Policy> counters<Policy>::unanswered(const ask<Policy>& question, outage_rule rule,
                                           instant at) noexcept
{
    const auto said = outage.answer(rule, plain_ask(question), at);
    return {said.granted, said.after, said.at, said.basis, at, 0};
}

template <policy Policy>
reply<Policy> counters<Policy>::end(const call<Policy>& begun, outage_rule rule,
                                    const remote::seat& seat) noexcept
{
    const auto& question = begun.question;
    if (!seat.answered) return unanswered(question, rule, begun.sent);
    auto made = read(question, question.times + begun.ahead, seat);
    if constexpr (leases) {
        const auto own = std::min(made.granted, question.times);
        leases_.put(question, made.granted - own, made, begun.sent);
        made.granted = own;
    }
    heard(question, rule, made);
    return made;
}

/// How many of a row's callers were granted. A fresh row does not tell: what fits into an untouched
/// state is the same at any instant.
template <policy Policy>
std::uint64_t counters<Policy>::granted_of(const ask<Policy>&     question,
                                           const remote::outcome& said) noexcept
{
    if (!said.fresh) return static_cast<std::uint64_t>(std::max<std::int64_t>(said.granted, 0));
    typename Policy::state untouched;
    return question.limit.spend(untouched, question.cost, static_cast<std::uint64_t>(said.callers),
                                said.at);
}

/// The words are the state after all callers of the row. Who was granted is told the state before
/// those who were granted later; who was refused, how many retry before.
template <policy Policy>
reply<Policy> counters<Policy>::read(const ask<Policy>& question, std::uint64_t times,
                                     const remote::seat& seat) noexcept
{
    const auto&   limit = question.limit;
    reply<Policy> made{.asked = seat.said.at};
    if (seat.said.found) made.after = spending<plain>::state_of(seat.said.after);
    made.at = limit.judged_at(made.after, made.asked);
    if (question.verb != verb::spend) return made;

    const auto granted = granted_of(question, seat.said);
    const auto before  = static_cast<std::uint64_t>(seat.place);
    made.granted       = std::min(detail::sub_clamped(granted, before), times);
    made.ahead         = detail::sub_clamped(before, granted);
    if (const auto later = detail::sub_clamped(granted, before + times); later > 0)
        limit.give_back(made.after, question.cost * later,
                        limit.lapses(told(question, made, {}, made.asked)), made.at);
    return made;
}

}  // namespace weir::postgres
