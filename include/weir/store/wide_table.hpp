// SPDX-License-Identifier: BSL-1.0
#pragma once

// States by key that are wider than a slot: a fixed array of buckets, seven states each under one
// short lock. For policies that are asked seldom, and whose state is more than one swap can change.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "weir/key.hpp"
#include "weir/pages.hpp"
#include "weir/policy.hpp"
#include "weir/time.hpp"

namespace weir {

/// Only what has recovered is replaced; nothing is swept, moved or allocated after construction.
/// Thread-safe: a change holds the lock of its bucket while the policy computes, and no longer.
///
/// At the stated capacity less than one key in a thousand finds its bucket full. All such keys
/// share the cells of an overflow, a quarter as many as keys: what one of them takes counts for all
/// in its cell, so that it may be too much and is never too little.
template <policy Policy>
class wide_table {
public:
    using state = typename Policy::state;

    /// `spills`: false is a table without an overflow.
    wide_table(std::size_t max_keys, bool spills)
        : buckets_(max_keys / 2 + 1), overflow_(spills ? max_keys / 4 + 1 : 0)
    {
    }

    struct outcome {
        state after     = {};
        bool  estimated = false;  ///< Others may have taken what counts here.
        bool  no_room   = false;  ///< Nothing was done.
    };

    /// Runs `change(state&, own) -> bool` on the key's state as one step; true says that it
    /// changed. `own` is false for what others of the overflow share. An untouched key gets a state
    /// when it has changed.
    template <class Change>
    outcome update(const Policy& limit, const key& who, instant at, Change&& change) noexcept;

    /// Calls `visit(key, state)` for each state that is not in the overflow.
    template <class Visit>
    void for_each(Visit&& visit) const;

    void prefetch(const key& who) const noexcept
    {
        auto& in = bucket_of(who);
        __builtin_prefetch(&in, 1);
        __builtin_prefetch(&in.all[preferred(who)], 1);
    }

    [[nodiscard]] std::size_t bytes() const noexcept
    {
        return sizeof(*this) + buckets_.bytes() + overflow_.bytes();
    }

private:
    static constexpr std::size_t width = 7;  // with the lock, the tags fill a cache line

    struct alignas(32) entry {   // on one cache line
        std::uint64_t low  = 0;  // the lower half of the key
        state         held = {};
    };
    struct alignas(64) bucket {
        std::uint64_t                    locked = 0;
        std::array<std::uint64_t, width> tags   = {};  // the upper halves of keys; 0 is free
        std::array<entry, width>         all    = {};
    };
    struct cell {
        std::uint64_t locked = 0;
        state         shared = {};
    };

    /// Spins: what is done under it takes less than a thread switch.
    class turn {
    public:
        explicit turn(std::uint64_t& lock) noexcept : lock_(&lock)
        {
            for (int tries = 1; __atomic_exchange_n(lock_, 1, __ATOMIC_ACQUIRE) != 0; ++tries)
                if (tries % 64 == 0) std::this_thread::yield();
        }
        ~turn() { __atomic_store_n(lock_, 0, __ATOMIC_RELEASE); }
        turn(const turn&)            = delete;
        turn& operator=(const turn&) = delete;

    private:
        std::uint64_t* lock_;
    };

    /// A key whose upper half is 0 would look like a free place.
    static std::uint64_t tag_of(const key& who) noexcept { return who.high | (who.high == 0); }

    bucket& bucket_of(const key& who) const noexcept { return among(buckets_, who.low); }
    cell&   cell_of(const key& who) const noexcept { return among(overflow_, who.high); }

    /// Keys are digests, so a part of one chooses by itself.
    template <class Place>
    static Place& among(const pages<Place>& all, std::uint64_t hash) noexcept
    {
        __extension__ using wide = unsigned __int128;
        return all[static_cast<std::size_t>(wide{hash} * all.size() >> 64)];
    }

    /// Where a key lies if it can: then its state is fetched while the tags still are.
    static std::size_t preferred(const key& who) noexcept { return who.high % width; }

    template <class Wanted>
    static std::size_t find(const key& who, Wanted&& wanted) noexcept
    {
        const auto first = preferred(who);
        if (wanted(first)) return first;
        std::size_t i = 0;
        while (i < width && !wanted(i)) ++i;
        return i;
    }

    template <class Change>
    [[gnu::noinline]] outcome begin(const Policy& limit, const key& who, instant at, bucket& in,
                                    Change& change) noexcept;
    template <class Change>
    [[gnu::noinline]] outcome begin_in_overflow(cell& of, Change& change) noexcept;

    pages<bucket>     buckets_;
    pages<cell>       overflow_;
    std::atomic<bool> overflowed_{false};
};

// ---------------------------------------------------------------------------------------------

template <policy Policy>
template <class Change>
auto wide_table<Policy>::update(const Policy& limit, const key& who, instant at,
                                Change&& change) noexcept -> outcome
{
    prefetch(who);
    auto&      in = bucket_of(who);
    const turn held(in.locked);
    const auto place =
        find(who, [&](auto i) { return in.tags[i] == tag_of(who) && in.all[i].low == who.low; });
    if (place == width) return begin(limit, who, at, in, change);
    change(in.all[place].held, true);
    return {.after = in.all[place].held};
}

/// The key has no state, or its cell of the overflow has it, and then it starts from that: a place
/// that comes free does not free the key.
template <policy Policy>
template <class Change>
auto wide_table<Policy>::begin(const Policy& limit, const key& who, instant at, bucket& in,
                               Change& change) noexcept -> outcome
{
    outcome made;
    if (overflowed_.load()) {
        auto&      known = cell_of(who);
        const turn held(known.locked);
        if (limit.recovered_at(known.shared) > at)
            made = {.after = known.shared, .estimated = true};
    }
    if (!change(made.after, !made.estimated)) return made;
    const auto place = find(
        who, [&](auto i) { return in.tags[i] == 0 || limit.recovered_at(in.all[i].held) <= at; });
    if (place == width && overflow_.size() == 0) return {.no_room = true};
    if (place == width) return begin_in_overflow(cell_of(who), change);
    in.tags[place] = tag_of(who);
    in.all[place]  = {who.low, made.after};
    return made;
}

template <policy Policy>
template <class Change>
auto wide_table<Policy>::begin_in_overflow(cell& of, Change& change) noexcept -> outcome
{
    overflowed_.store(true);
    const turn held(of.locked);
    change(of.shared, false);
    return {.after = of.shared, .estimated = true};
}

template <policy Policy>
template <class Visit>
void wide_table<Policy>::for_each(Visit&& visit) const
{
    for (std::size_t n = 0; n < buckets_.size(); ++n) {
        auto&      in = buckets_[n];
        const turn held(in.locked);
        for (std::size_t i = 0; i < width; ++i)
            if (in.tags[i] != 0) visit(key{in.tags[i], in.all[i].low}, in.all[i].held);
    }
}

}  // namespace weir
