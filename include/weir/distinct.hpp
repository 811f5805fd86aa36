// SPDX-License-Identifier: BSL-1.0
#pragma once

// How many different values one subject may show in a window: fingerprints of one address, accounts
// tried by one address. Against clients that get a new budget by changing what they are counted by.

#include <array>
#include <concepts>
#include <span>
#include <string>
#include <string_view>

#include "weir/admit_all.hpp"
#include "weir/decision.hpp"
#include "weir/key.hpp"
#include "weir/limiter.hpp"
#include "weir/policy/fixed_window.hpp"
#include "weir/store.hpp"

namespace weir {

/// Two limiters on one store: one admits each pair of subject and value once in a window, the other
/// counts, for the subject, the pairs that were new.
///
///     weir::distinct_limiter stacks("ja4.distinct", {.limit = 8, .window = 1h}, counters);
///     if (auto decision = stacks.admit(client, fingerprint); !decision) …
///
/// Both are charged or neither is, so each value counts once, however many ask with it at a time,
/// and one that was refused is not taken for known. Two asks that overlap one that was put back may
/// let a value through that was one too many. Windows are those of `fixed_window`: each knows
/// nothing of the last. Takes a key of the store for each subject and for each value admitted.
///
/// Thread-safe; borrows the store. Let it be one that counts: where it can only estimate whether it
/// knows a pair, each ask counts as a new value, since an estimate may take any pair for a known
/// one.
template <class Store>
    requires store_of<Store, fixed_window>
class distinct_limiter {
public:
    /// Throws std::invalid_argument for numbers that the store cannot hold.
    distinct_limiter(std::string_view name, const fixed_window& most, Store& store,
                     limiter_options options = {})
        : known_(std::string(name) + ".known", {.limit = 1, .window = most.window}, store, options),
          fresh_(name, most, store, options)
    {
    }
    distinct_limiter(std::string_view, const fixed_window&, const Store&&,
                     limiter_options = {}) = delete;

    /// Admitted if `who` showed `value` in this window before, or may show one more: the figures
    /// are those of values, and the cost is 0 for one that is known. O(1) after the digests; never
    /// throws. For stores on the caller's clock the instant is the last argument.
    template <subject_part Who, subject_part Value>
    [[nodiscard]] decision
    admit(const Who& who, const Value& value,
          std::same_as<instant> auto at) const noexcept requires Store::on_callers_clock
    {
        return decide(who, value, at);
    }
    template <subject_part Who, subject_part Value>
    [[nodiscard]] decision admit(const Who& who, const Value& value) const noexcept
    {
        return decide(who, value);
    }

private:
    template <class Who, class Value, class... At>
    decision decide(const Who& who, const Value& value, At... at) const noexcept;

    limiter<fixed_window, Store> known_;
    limiter<fixed_window, Store> fresh_;
};

// ---------------------------------------------------------------------------------------------

template <class Store>
    requires store_of<Store, fixed_window>
template <class Who, class Value, class... At>
decision distinct_limiter<Store>::decide(const Who& who, const Value& value,
                                         At... at) const noexcept
{
    const std::array<pending, 2> set{known_(parts{who, value}), fresh_(who)};
    (void)admit_all(std::span<const pending>(set), at...);
    const auto& pair = set[0].made();
    auto        made = set[1].made();
    if (pair) return made;
    if (pair.basis >= basis::estimated && pair.basis != basis::local)
        return fresh_.admit(who, at...);
    made.verdict     = verdict::admitted;
    made.cost        = 0;
    made.retry_after = duration::zero();
    return made;
}

}  // namespace weir
