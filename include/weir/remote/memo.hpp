// SPDX-License-Identifier: BSL-1.0
#pragma once

// Refusals of a shared store, remembered: a flood on exhausted keys is answered here, at the price
// of a read, and the store is asked about each key once in a while. Admissions are never made up.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "weir/policy.hpp"
#include "weir/remote/recall.hpp"
#include "weir/store.hpp"
#include "weir/time.hpp"

namespace weir::remote {

/// The last state that the store told of each key, as long as it refuses. Thread-safe; bounded: it
/// may forget at any time, and then the store is asked.
///
/// It refuses only what the store itself would. A state was true when the store was asked, and a
/// reply comes later than it is made: `asked` and the time since it was received together are an
/// instant that the store's clock has passed already. At that instant the policy refuses this cost
/// on the state, and whoever else spent meanwhile only made the state worse. (Where others may
/// better it, by a give-back or a raised limit of another process, it errs for `longest` at most.)
/// The same instant is where `retry_after` counts from, so who waits that long from the reply, the
/// store's own or one from here, is past it here and at the store, and is not refused from memory.
/// A clock of this process that leaps forward ends a memory sooner.
///
/// The limit is the question's, so a raised one holds at once, and a smaller cost that fits passes.
template <policy P>
class memo {
public:
    /// `longest`: how old a memory may be. Throws std::bad_alloc.
    memo(std::size_t entries, duration longest) : known_(entries), longest_(longest) {}

    /// The remembered refusal of a spend; none for other verbs, since who peeks wants a fresh look.
    /// `here` is weir::now() of this process. Writes nothing; O(1).
    [[nodiscard, gnu::flatten]] std::optional<reply<P>> refusal(const ask<P>& question,
                                                                instant       here) const noexcept;

    /// The store said so, and it came at `received`, an instant of weir::now(). Of replies on one
    /// key the one that the store made last counts, in whatever order threads get here.
    void heard(const ask<P>& question, const reply<P>& said, instant received) noexcept;

    /// Forgets the key. For give_back and forget, before they ask: their replies may never come.
    void drop(const key& who) noexcept { known_.drop(who); }

    [[nodiscard]] std::size_t bytes() const noexcept { return known_.bytes(); }

private:
    struct memory {
        typename P::state after    = {};
        instant           asked    = {};
        instant           received = {};
    };

    static bool refuses(const P& limit, const memory& seen, std::uint64_t cost, instant at) noexcept
    {
        auto trial = seen.after;
        return limit.spend(trial, cost, 1, at) == 0;
    }

    recall<memory> known_;
    duration       longest_;
};

// ---------------------------------------------------------------------------------------------

/// One object on all ways out, so that it is written where it is returned: a copy of what was just
/// written in parts would stall the processor.
template <policy P>
std::optional<reply<P>> memo<P>::refusal(const ask<P>& question, instant here) const noexcept
{
    std::optional<reply<P>> said;
    memory                  seen;
    if (question.verb != verb::spend || !known_.find(question.who, seen)) return said;
    const auto age = saturating_sub(here, seen.received);
    if (age < duration::zero() || age >= longest_) return said;
    const auto at = saturating_add(seen.asked, age);
    if (!refuses(question.limit, seen, question.cost, at)) return said;

    auto& made = said.emplace();
    made.after = seen.after;
    made.at    = question.limit.judged_at(seen.after, at);
    made.basis = basis::remembered;
    made.asked = at;
    return said;
}

template <policy P>
void memo<P>::heard(const ask<P>& question, const reply<P>& said, instant received) noexcept
{
    if (said.basis != basis::counted) return;
    const memory fresh{.after = said.after, .asked = said.asked, .received = received};
    // A state that admits is kept too if it was made better: a refusal from before it may still be
    // on its way here. And it replaces what is remembered: that is older.
    const bool better = question.verb == verb::give_back || question.verb == verb::forget;
    const bool worth  = better || refuses(question.limit, fresh,
                                          std::max<std::uint64_t>(question.cost, 1), said.asked);
    const auto older  = [&](const memory& old) {
        return old.asked < fresh.asked || (better && old.asked == fresh.asked) ||
               saturating_sub(received, old.received) >= longest_;
    };
    memory     old;
    const bool known = known_.find(question.who, old);
    if (known ? older(old) : worth) known_.keep_if(question.who, fresh, older);
}

}  // namespace weir::remote
