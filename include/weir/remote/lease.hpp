// SPDX-License-Identifier: BSL-1.0
#pragma once

// Units taken ahead: on a hot key one ask of the shared store pays for many requests. A unit is
// counted before it is used, so no limit is passed; what is not used by the end of its window is
// wasted, and others were refused for it.

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "weir/policy.hpp"
#include "weir/policy/fixed_window.hpp"
#include "weir/policy/sliding_window.hpp"
#include "weir/store.hpp"
#include "weir/time.hpp"

namespace weir {

/// A limit whose units can be taken ahead: they are charged to an aligned window, and a lease ends
/// with it. A gcra has none: a unit comes back from the moment it is taken, so one used later would
/// be there twice.
template <class P>
concept leasable = std::same_as<P, fixed_window> || std::same_as<P, sliding_window>;

/// The same limit, with leases on stores that share it. Waste: at most `units` a key, process and
/// window, and at most half of what that process was granted; beside it only leases that are lost.
template <leasable P>
struct leased : P {
    using plain = P;

    std::uint64_t units = 10;  ///< The most that a process takes ahead on one key; 0: none.

    friend constexpr bool operator==(const leased&, const leased&) = default;
};
template <leasable P>
leased(P) -> leased<P>;
template <leasable P>
leased(P, std::uint64_t) -> leased<P>;

static_assert(policy<leased<fixed_window>> && policy<leased<sliding_window>>);

namespace remote {

/// Either of them, with its lease or without.
// clang-format off
template <class P>
concept with_windows = leasable<P> || (leasable<typename P::plain> &&
                                       std::same_as<P, leased<typename P::plain>>);
// clang-format on

/// What this process holds ahead on the keys of one limiter. Thread-safe, exact: no unit is given
/// twice. Bounded; a lease that is pushed out, or whose reply is lost, is wasted. O(1).
template <with_windows P>
class leases {
public:
    /// Room for about `entries` keys, at most 112 bytes each, taken now; 0 holds none. Throws
    /// std::bad_alloc.
    explicit leases(std::size_t entries)
        : mask_(std::bit_ceil(entries / ways + (entries % ways != 0)) - 1), holds_(entries > 0),
          sets_(std::make_unique<set[]>(mask_ + 1))
    {
    }

    /// One ask answered out of a live lease, if enough is left of it. The reply's `asked` is the
    /// store's time at `here` (weir::now()) or a little later, so that no lease outlives its
    /// window; its state is as the store told it, with all that was taken ahead. None under a limit
    /// that was lowered since, until the store has granted under it.
    std::optional<reply<P>> take(const ask<P>& question, instant here) noexcept;

    /// How many asks more of this cost to take along with this one; `most` and what is answered
    /// hold for their units. As much as this process used of the key in this window: a key asked
    /// once leases nothing, one asked again and again 1, 2, 4 … Of asks under way at once only one
    /// is told so, until its reply is `put` or for a second.
    std::uint64_t ahead(const ask<P>& question, std::uint64_t most, instant here) noexcept;

    /// For each spend that the store answered: its reply as it came, and how many of its `granted`
    /// were asked ahead. `sent` is weir::now() before it was sent.
    void put(const ask<P>& question, std::uint64_t asks_ahead_granted, const reply<P>& said,
             instant sent) noexcept;

    /// Gives the key's lease up. For forget: the store knows nothing of it any more.
    void drop(const key& who) noexcept;

    [[nodiscard]] std::size_t bytes() const noexcept
    {
        return sizeof(*this) + (mask_ + 1) * sizeof(set);
    }

private:
    static constexpr std::size_t ways        = 4;
    static constexpr duration    longest_ask = std::chrono::seconds(1);

    struct lease {
        key               who     = {};
        typename P::state after   = {};
        instant           end     = instant::min();  // of the window that it was charged to
        instant           asked   = instant::min();  // the store's time, not before
        instant           sent    = instant::min();  // our own
        instant           asking  = instant::min();  // until then somebody asks for more
        std::uint64_t     limit   = 0;               // under which all of it fits
        std::uint64_t     granted = 0;               // units in this window, those ahead among them
        std::uint64_t     left    = 0;               // of those ahead
    };
    struct alignas(64) set {
        std::mutex              turn = {};
        std::array<lease, ways> of   = {};
    };

    set& set_of(const key& who) const noexcept { return sets_[who.low & mask_]; }

    static lease*  find(set& in, const key& who) noexcept;
    static lease*  place(set& in, const lease& heard) noexcept;
    static instant store_time(const lease& own, instant here) noexcept;
    static bool    live(const lease& own, instant here) noexcept
    {
        return here >= own.sent && store_time(own, here) < own.end;
    }

    std::size_t            mask_;
    bool                   holds_;
    std::unique_ptr<set[]> sets_;
};

// ---------------------------------------------------------------------------------------------

/// Not before the store's time at `here`: the store was asked after `sent`, and of two clocks that
/// are slewed (adjtimex: 0.5 ms a second at most) ours may run a thousandth slower.
template <with_windows P>
instant leases<P>::store_time(const lease& own, instant here) noexcept
{
    const auto since = saturating_sub(here, own.sent);
    return saturating_add(own.asked, saturating_add(since, since / 1'000));
}

template <with_windows P>
auto leases<P>::find(set& in, const key& who) noexcept -> lease*
{
    for (auto& one : in.of)
        if (one.who == who) return &one;
    return nullptr;
}

/// The key's lease in the window of `heard`; null if a later window was heard of before. A new one
/// goes where a window is over, or else where the least was granted: a flood of keys asked once
/// does not push out a hot one.
template <with_windows P>
auto leases<P>::place(set& in, const lease& heard) noexcept -> lease*
{
    auto* own = find(in, heard.who);
    if (own != nullptr && own->end == heard.end) return own;
    if (own != nullptr && heard.sent < own->sent) return nullptr;
    if (own == nullptr) {
        const auto worth = [&](const lease& one) {
            return one.end > heard.asked ? one.granted : 0;
        };
        own = &*std::ranges::min_element(in.of, {}, worth);
    }
    *own = heard;
    return own;
}

template <with_windows P>
std::optional<reply<P>> leases<P>::take(const ask<P>& question, instant here) noexcept
{
    std::optional<reply<P>> said;
    if (question.verb != verb::spend || question.times != 1 || question.cost == 0) return said;
    auto&                 in = set_of(question.who);
    const std::lock_guard turn(in.turn);
    auto* const           own = find(in, question.who);
    if (own == nullptr || own->left < question.cost || !live(*own, here)) return said;
    if (question.limit.limit < own->limit) return said;
    own->left -= question.cost;

    auto& made   = said.emplace();
    made.granted = 1;
    made.after   = own->after;
    made.basis   = basis::leased;
    made.asked   = store_time(*own, here);
    made.at      = question.limit.judged_at(own->after, made.asked);
    return said;
}

template <with_windows P>
std::uint64_t leases<P>::ahead(const ask<P>& question, std::uint64_t most, instant here) noexcept
{
    if (question.verb != verb::spend || question.cost == 0) return 0;
    auto&                 in = set_of(question.who);
    const std::lock_guard turn(in.turn);
    auto* const           own = find(in, question.who);
    if (own == nullptr || !live(*own, here) || here < own->asking) return 0;
    const auto used = own->granted - own->left;
    const auto asks = detail::sub_clamped(std::min(most, used), own->left) / question.cost;
    if (asks > 0) own->asking = saturating_add(here, longest_ask);
    return asks;
}

template <with_windows P>
void leases<P>::put(const ask<P>& question, std::uint64_t asks_ahead_granted, const reply<P>& said,
                    instant sent) noexcept
{
    if (!holds_ || question.verb != verb::spend || said.basis != basis::counted) return;
    if (said.granted == 0) return;
    const lease           heard{.who   = question.who,
                                .after = said.after,
                                .end   = window_end(said.at, question.limit.window),
                                .asked = said.asked,
                                .sent  = sent,
                                .limit = question.limit.limit};
    auto&                 in = set_of(question.who);
    const std::lock_guard turn(in.turn);
    auto* const           own = place(in, heard);
    if (own == nullptr) return;
    if (sent >= own->sent) {
        own->after = heard.after, own->limit = heard.limit;
        own->asked = heard.asked, own->sent = heard.sent;
    }
    own->granted += said.granted * question.cost;
    own->left += std::min(asks_ahead_granted, said.granted) * question.cost;
    if (asks_ahead_granted > 0) own->asking = instant::min();
}

template <with_windows P>
void leases<P>::drop(const key& who) noexcept
{
    auto&                 in = set_of(who);
    const std::lock_guard turn(in.turn);
    if (auto* const own = find(in, who)) *own = {};
}

}  // namespace remote
}  // namespace weir
