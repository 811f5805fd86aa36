// SPDX-License-Identifier: BSL-1.0
#pragma once

// Several limits, possibly with different keys, as one decision: all or nothing.

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string_view>

#include "weir/decision.hpp"
#include "weir/pending.hpp"
#include "weir/time.hpp"

namespace weir {

/// The decision of a set: the figures of the tightest limiter, and who refused.
struct [[nodiscard]] joint_decision : decision {
    static constexpr std::size_t most_named = 8;

    /// The names of the limiters that refused, in the order of the set; the first eight.
    [[nodiscard]] std::span<const std::string_view> refused_by() const noexcept
    {
        return std::span(names_).first(named_);
    }

    void name_refused(std::string_view name) noexcept
    {
        if (named_ < most_named) names_[named_++] = name;
    }

private:
    std::array<std::string_view, most_named> names_{};
    std::size_t                              named_ = 0;
};

/// Admits the whole set or spends nothing: `admit_all({per_ip(client), per_user(user, {.cost =
/// 3})})`. All are looked at first; then they are spent in the order of their keys, and put back
/// when one refuses after all. So never more than a limit is admitted; a set is refused only if it
/// does not fit or overlapped one that was put back. If all limiters are on one shared store that
/// takes sets (`admits_sets`), it does so in one step, and nothing has to be put back. An empty set
/// is admitted. O(n²) for n asks, no allocation but that of such a store; thread-safe; never
/// throws.
///
/// The instant is for limiters on the caller's clock; others in the set go by their own.
inline joint_decision admit_all(std::span<const pending> set, instant at) noexcept;
inline joint_decision admit_all(std::initializer_list<pending> set, instant at) noexcept
{
    return admit_all(std::span(set.begin(), set.size()), at);
}

/// As above, at the instant on the clock of the first limiter whose store keeps the caller's time.
inline joint_decision admit_all(std::span<const pending> set) noexcept;
inline joint_decision admit_all(std::initializer_list<pending> set) noexcept
{
    return admit_all(std::span(set.begin(), set.size()));
}

// ---------------------------------------------------------------------------------------------

namespace detail {

/// The tightest of what the set decided last; names those that refused.
inline joint_decision summary(std::span<const pending> set) noexcept
{
    joint_decision joint;
    joint.verdict = verdict::admitted;
    if (set.empty()) return joint;
    static_cast<decision&>(joint) = set.front().made();
    for (const auto& one : set) {
        if (&one != &set.front()) static_cast<decision&>(joint) = both(joint, one.made());
        if (!one.made()) joint.name_refused(one.made().limiter);
    }
    return joint;
}

/// The ask that comes after `last` in the order of keys (the first of all after null); null at the
/// end. Equal keys go by their place in the set.
inline const pending* next_in_order(std::span<const pending> set, const pending* last) noexcept
{
    const auto before = [](const pending& a, const pending& b) {
        return a.who() != b.who() ? a.who() < b.who() : &a < &b;
    };
    const pending* next = nullptr;
    for (const auto& one : set)
        if ((last == nullptr || before(*last, one)) && (next == nullptr || before(one, *next)))
            next = &one;
    return next;
}

inline void undo_until(std::span<const pending> set, const pending* refused, instant at) noexcept
{
    for (auto one = next_in_order(set, nullptr); one != refused; one = next_in_order(set, one))
        one->run_step(pending::step::undo, at);
}

/// Whether one store can decide it as a whole. What never fits is refused without spending, and
/// what takes nothing is looked at.
inline bool goes_whole(std::span<const pending> set) noexcept
{
    for (const auto& one : set)
        if (!one.shares_store(set.front()) || one.takes_nothing() || one.never_fits()) return false;
    return !set.empty();
}

}  // namespace detail

inline joint_decision admit_all(std::span<const pending> set, instant at) noexcept
{
    if (detail::goes_whole(set)) {
        if (set.size() > 1) set.front().admit_set(set);
        else set.front().run_step(pending::step::spend, at);  // it may share what others wait for
        return detail::summary(set);
    }
    bool fits = true;
    for (const auto& one : set) fits &= bool(one.run_step(pending::step::peek, at));
    if (!fits) return detail::summary(set);

    for (auto one = detail::next_in_order(set, nullptr); one;
         one      = detail::next_in_order(set, one)) {
        if (one->run_step(pending::step::spend, at)) continue;
        const auto joint = detail::summary(set);
        detail::undo_until(set, one, at);
        return joint;
    }
    return detail::summary(set);
}

inline joint_decision admit_all(std::span<const pending> set) noexcept
{
    for (const auto& one : set)
        if (one.takes_instant()) return admit_all(set, one.present());
    return admit_all(set, instant());
}

}  // namespace weir
