// SPDX-License-Identifier: BSL-1.0
#pragma once

// Values by key that may be forgotten at any time: what is cheap to have and harmless to lose.
// Bounded and allocated once; a flood of keys pushes others out and does nothing else.

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>
#include <type_traits>
#include <utility>

#include "weir/key.hpp"
#include "weir/pages.hpp"

namespace weir::remote {

/// What can be copied word by word.
template <class Value>
concept recallable = std::is_trivially_copyable_v<Value> && std::default_initializable<Value>;

/// Sets of eight ways, so that a quarter of `entries` keys hardly ever push one another out. Bits
/// of a key choose its set, so keys must be digests; the key of all zeros is never remembered.
/// O(1). Thread-safe: a set is a sequence lock (see published.hpp for the order of its words);
/// readers write nothing, and one that writers disturb looks again, and finds nothing in the end.
template <recallable Value>
class recall {
public:
    /// Room for `entries` values, rounded up to a power of two; 0 remembers nothing. Throws
    /// std::bad_alloc.
    explicit recall(std::size_t entries)
        : sets_(std::bit_ceil(entries / ways + entries % ways)), remembers_(entries > 0)
    {
    }

    /// False if nothing is known; `found` is then as it was.
    [[nodiscard]] bool find(const key& who, Value& found) const noexcept;

    /// Instead of what the key had, or of nothing, or of one of the others in turn. Lossy: it gives
    /// way to another writer.
    void keep(const key& who, const Value& value) noexcept
    {
        if (auto& in = set_of(who); remembers_ && try_lock(in)) write(in, who, value);
    }

    /// As `keep`, unless the key has a value that `gives_way(const Value&)` is false of. As one
    /// step, and never lost: it waits for its turn.
    template <class GivesWay>
    void keep_if(const key& who, const Value& value, GivesWay&& gives_way) noexcept;

    /// What was kept before is not found from now on: it waits for its turn if the key is there.
    void drop(const key& who) noexcept;

    [[nodiscard]] std::size_t bytes() const noexcept { return sizeof(*this) + sets_.bytes(); }

private:
    static constexpr int           most_looks  = 32;  // of a reader whom writers disturb
    static constexpr std::size_t   ways        = 8;
    static constexpr std::size_t   value_words = (sizeof(Value) + 7) / 8;
    static constexpr std::uint64_t turn_of     = 2;               // of a version: which way is next
    static constexpr std::uint64_t writes_of   = turn_of * ways;  // and how often it was written

    using word = std::atomic<std::uint64_t>;
    struct way {
        word                          high{0};  // of the key
        std::array<word, value_words> value{};
    };
    struct alignas(64) set {
        std::array<word, ways> low{};  // of the keys: one line to look through
        std::array<way, ways>  way_of{};
        word                   version{0};  // bit 0: being written; then the turn, and the writes
    };

    set& set_of(const key& who) const noexcept { return sets_[who.low & (sets_.size() - 1)]; }

    static std::size_t holder(const set& in, const key& who) noexcept;
    static bool        try_lock(set& in) noexcept;
    static void        lock(set& in) noexcept;
    static void        unlock(set& in, std::uint64_t turns = 0) noexcept;
    static void        write(set& in, const key& who, const Value& value) noexcept;

    using words = std::array<std::uint64_t, value_words>;
    static words copy(const way& from) noexcept;
    static void  hand_over(const words& from, Value& to) noexcept;

    pages<set> sets_;
    bool       remembers_;
};

// ---------------------------------------------------------------------------------------------

/// The way that holds the key, or `ways`.
template <recallable Value>
std::size_t recall<Value>::holder(const set& in, const key& who) noexcept
{
    for (std::size_t i = 0; i < ways; ++i)
        if (in.low[i].load(std::memory_order_acquire) == who.low &&
            in.way_of[i].high.load(std::memory_order_acquire) == who.high)
            return who == key{} ? ways : i;  // zeros: an empty way
    return ways;
}

template <recallable Value>
auto recall<Value>::copy(const way& from) noexcept -> words
{
    return [&]<std::size_t... I>(std::index_sequence<I...>)
    {
        return words{from.value[I].load(std::memory_order_acquire)...};
    }
    (std::make_index_sequence<value_words>());
}

/// Word by word: copied as a whole, it would be read in wider pieces than it was just written in.
template <recallable Value>
void recall<Value>::hand_over(const words& from, Value& to) noexcept
{
    [&]<std::size_t... I>(std::index_sequence<I...>)
    {
        (std::memcpy(reinterpret_cast<std::byte*>(&to) + 8 * I, &from[I],
                     std::min<std::size_t>(8, sizeof(Value) - 8 * I)),
         ...);
    }
    (std::make_index_sequence<value_words>());
}

/// A set is written in a few stores; but whoever writes may be waiting for a processor.
template <recallable Value>
bool recall<Value>::find(const key& who, Value& found) const noexcept
{
    const auto& in = set_of(who);
    for (int tries = 0; tries < most_looks; ++tries) {
        if (tries > most_looks / 2) [[unlikely]]
            std::this_thread::yield();
        const auto before = in.version.load(std::memory_order_acquire);
        if (before % 2 != 0) [[unlikely]]
            continue;
        const auto held = holder(in, who);
        const auto read = held == ways ? words{} : copy(in.way_of[held]);
        if (in.version.load(std::memory_order_relaxed) != before) [[unlikely]]
            continue;
        if (held != ways) hand_over(read, found);
        return held != ways;
    }
    return false;
}

template <recallable Value>
bool recall<Value>::try_lock(set& in) noexcept
{
    auto version = in.version.load(std::memory_order_relaxed);
    return version % 2 == 0 &&
           in.version.compare_exchange_strong(version, version | 1, std::memory_order_acquire,
                                              std::memory_order_relaxed);
}

/// Held for a few stores only; but whoever holds it may be waiting for a processor.
template <recallable Value>
void recall<Value>::lock(set& in) noexcept
{
    for (int tries = 0; !try_lock(in); ++tries)
        if (tries > 100) std::this_thread::yield();
}

/// The turn comes round within its bits; the writes take what is above.
template <recallable Value>
void recall<Value>::unlock(set& in, std::uint64_t turns) noexcept
{
    const auto version = in.version.load(std::memory_order_relaxed);
    const auto turn    = (version / turn_of + turns) % ways;
    in.version.store((version / writes_of + 1) * writes_of + turn * turn_of,
                     std::memory_order_release);
}

/// Into a set that is locked, and unlocks it.
template <recallable Value>
void recall<Value>::write(set& in, const key& who, const Value& value) noexcept
{
    const auto empty = [&](std::size_t at) {
        return (in.way_of[at].high.load(std::memory_order_relaxed) |
                in.low[at].load(std::memory_order_relaxed)) == 0;
    };
    auto chosen = holder(in, who);
    for (std::size_t i = 0; chosen == ways && i < ways; ++i)
        if (empty(i)) chosen = i;
    const bool pushes = chosen == ways;
    if (pushes) chosen = in.version.load(std::memory_order_relaxed) / turn_of % ways;

    auto& into = in.way_of[chosen];
    words parts{};
    std::memcpy(parts.data(), &value, sizeof(Value));
    into.high.store(who.high, std::memory_order_release);
    in.low[chosen].store(who.low, std::memory_order_release);
    for (std::size_t i = 0; i < value_words; ++i)
        into.value[i].store(parts[i], std::memory_order_release);
    unlock(in, pushes ? 1 : 0);
}

template <recallable Value>
template <class GivesWay>
void recall<Value>::keep_if(const key& who, const Value& value, GivesWay&& gives_way) noexcept
{
    if (!remembers_) return;
    auto& in = set_of(who);
    lock(in);
    if (const auto held = holder(in, who); held != ways) {
        Value old{};
        hand_over(copy(in.way_of[held]), old);
        if (!gives_way(std::as_const(old))) return unlock(in);
    }
    write(in, who, value);
}

template <recallable Value>
void recall<Value>::drop(const key& who) noexcept
{
    auto&      in     = set_of(who);
    const auto before = in.version.load(std::memory_order_acquire);
    const bool absent = before % 2 == 0 && holder(in, who) == ways;
    if (absent && in.version.load(std::memory_order_relaxed) == before) return;
    lock(in);
    if (const auto held = holder(in, who); held != ways) {
        in.way_of[held].high.store(0, std::memory_order_release);
        in.low[held].store(0, std::memory_order_release);
    }
    unlock(in);
}

}  // namespace weir::remote
