// SPDX-License-Identifier: BSL-1.0
#pragma once

// The exact counters of one limiter: a fixed array of cache lines, four slots each. A key has two
// candidate lines; the second is looked at only when the first does not hold the key. At the stated
// capacity fewer than one key in ten thousand finds all eight slots taken.

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "weir/key.hpp"
#include "weir/pages.hpp"
#include "weir/policy.hpp"
#include "weir/store.hpp"
#include "weir/store/packing.hpp"
#include "weir/store/slot.hpp"

namespace weir {

/// States by key. Only what has recovered is replaced; nothing is swept, moved or allocated after
/// construction. Thread-safe and lock-free: every change is one compare-and-swap of a slot.
///
/// A key has at most one counter, though it may be inserted by many threads at once. An insertion
/// first claims a free slot: tag and a nonce that is never used again, no units. Then it collects
/// both lines once more. If that shows no other slot of the key, it swaps its claim for the first
/// state; other claims of the key it clears first, and a counter that it meets it uses instead. Of
/// two claims, the later one sees or is seen by the other, so only one can become a counter. A
/// claim counts as recovered: a thread that dies in between holds nothing.
///
/// Two keys share a counter if both a line and the tag agree. The tag is what the stamp of the
/// packing leaves of 64 bits, 34 for sliding windows of a second: then, of a million keys in a full
/// table, 0.0001 are expected to share one.
template <policy Policy>
class table {
public:
    using state = typename Policy::state;

    static constexpr std::size_t slots_per_line = 4;
    static constexpr std::size_t load_percent   = 53;  ///< Keys to slots at the stated capacity.

    table(const Policy& limit, std::size_t max_keys)
        : packing_(limit), tag_mask_(~std::uint64_t{0} << packing_.stamp_bits()),
          lines_(max_keys * 100 / (load_percent * slots_per_line) + 2)
    {
    }

    struct outcome {
        std::uint64_t granted = 0;
        state         after   = {};
    };

    /// Runs `change(state&, uint64& granted) -> bool` on the key's counter as one step; false if it
    /// has none. A change that returns false has changed nothing, and nothing is written.
    template <class Change>
    bool update(const key& who, const grid& now, Change&& change, outcome& done) noexcept;

    /// As `update`; a key without a counter gets one that starts as `first()`. False when all its
    /// slots are taken by others that have not recovered.
    template <class Change, class First>
    bool update_or_insert(const Policy& limit, const key& who, const grid& now, Change&& change,
                          First&& first, outcome& done) noexcept;

    /// Clears claims on the key's behalf, so that an insertion under way begins again.
    void clear_claims(const key& who) noexcept;

    void prefetch(const key& who) const noexcept
    {
        __builtin_prefetch(&line_of(who.high), 1);
        __builtin_prefetch(&line_of(who.low), 1);
    }

    [[nodiscard]] grid        at(instant at) const noexcept { return packing_.at(at); }
    [[nodiscard]] std::size_t bytes() const noexcept { return sizeof(*this) + lines_.bytes(); }

    /// Counters that have not recovered at `at`. Reads the whole table; a gauge for operators.
    [[nodiscard]] std::size_t live(const Policy& limit, instant at) const noexcept;

private:
    struct alignas(64) line {
        std::array<slot, slots_per_line> slots;
    };
    static constexpr std::uint64_t claim_bit = 1;

    /// One look at all candidates of a key.
    struct collected {
        slot*         counter = nullptr;  // the key's counter, if it has one
        slot*         claim   = nullptr;  // the key's first claim
        std::uint64_t nonce   = 0;
        bool          alone   = true;     // no second claim of the key was met (it was cleared)
        slot*         free    = nullptr;  // where a claim can be made
        slot          was     = {};       // what lies there
    };

    [[nodiscard]] std::uint64_t tag_of(const key& who) const noexcept;
    [[nodiscard]] line&         line_of(std::uint64_t hash) const noexcept;
    [[nodiscard]] slot*         find(const key& who, std::uint64_t tag) const noexcept;
    [[nodiscard]] slot*         find_in(line& among, std::uint64_t tag) const noexcept;
    [[gnu::noinline]] slot*     find_counter(const key& who, std::uint64_t tag) const noexcept;

    template <class Change>
    bool update_counter(slot& counter, std::uint64_t tag, const grid& now, Change& change,
                        outcome& done) noexcept;

    collected collect(const Policy& limit, const key& who, std::uint64_t tag, const grid&) noexcept;
    void      note(collected& seen, slot& one, const slot& is) const noexcept;
    void      note_free(collected& seen, slot& one, const slot& is) const noexcept;
    bool      free_at(const Policy& limit, const slot& is, const grid& now) const noexcept;
    static inline constinit std::atomic<std::uint64_t> last_nonce{0};

    packing<Policy> packing_;
    std::uint64_t   tag_mask_;
    pages<line>     lines_;
};

// ---------------------------------------------------------------------------------------------

/// Bits that are independent of the choice of either line; never zero, which is empty.
template <policy Policy>
std::uint64_t table<Policy>::tag_of(const key& who) const noexcept
{
    const auto tag = (who.high ^ std::rotl(who.low, 32)) << packing_.stamp_bits();
    return tag != 0 ? tag : ~tag_mask_ + 1;
}

template <policy Policy>
auto table<Policy>::line_of(std::uint64_t hash) const noexcept -> line&
{
    __extension__ using wide = unsigned __int128;
    return lines_[static_cast<std::size_t>(wide{hash} * lines_.size() >> 64)];
}

/// No branch on the way, since which slot it is cannot be predicted.
template <policy Policy>
slot* table<Policy>::find_in(line& among, std::uint64_t tag) const noexcept
{
    const auto is = [&, stamps = ~tag_mask_](std::size_t i) {
        return static_cast<unsigned>(
            (__atomic_load_n(&among.slots[i].head, __ATOMIC_RELAXED) ^ tag) <= stamps);
    };
    const auto match = is(0) | is(1) << 1 | is(2) << 2 | is(3) << 3;
    return match == 0 ? nullptr : &among.slots[static_cast<std::size_t>(std::countr_zero(match))];
}

template <policy Policy>
slot* table<Policy>::find(const key& who, std::uint64_t tag) const noexcept
{
    if (auto* const first = find_in(line_of(who.high), tag)) [[likely]]
        return first;
    return find_in(line_of(who.low), tag);
}

/// As `find`, past claims of the same key.
template <policy Policy>
slot* table<Policy>::find_counter(const key& who, std::uint64_t tag) const noexcept
{
    for (auto* among : {&line_of(who.high), &line_of(who.low)})
        for (auto& one : among->slots)
            if ((peek(one).head & (tag_mask_ | claim_bit)) == tag) return &one;
    return nullptr;
}

/// One step on a counter; false if it is only a claim, or was let to another key meanwhile.
template <policy Policy>
template <class Change>
bool table<Policy>::update_counter(slot& counter, std::uint64_t tag, const grid& now,
                                   Change& change, outcome& done) noexcept
{
    for (;;) {
        const auto was = peek(counter);
        if ((was.head & (tag_mask_ | claim_bit)) != tag) [[unlikely]]
            return false;
        done.after = packing_.unpack(was, now);
        if (!change(done.after, done.granted)) break;
        auto next = packing_.pack(done.after, now);
        next.head |= tag;
        if (swap(counter, was, next)) [[likely]]
            break;
    }
    return true;
}

template <policy Policy>
template <class Change>
bool table<Policy>::update(const key& who, const grid& now, Change&& change, outcome& done) noexcept
{
    const auto  tag   = tag_of(who);
    auto* const found = find(who, tag);
    if (found == nullptr) return false;
    if (update_counter(*found, tag, now, change, done)) [[likely]]
        return true;
    // A claim stood in front, or the slot was let to another key meanwhile: look at all of them.
    auto* const counter = find_counter(who, tag);
    return counter != nullptr && update_counter(*counter, tag, now, change, done);
}

template <policy Policy>
template <class Change, class First>
bool table<Policy>::update_or_insert(const Policy& limit, const key& who, const grid& now,
                                     Change&& change, First&& first, outcome& done) noexcept
{
    const auto    tag     = tag_of(who);
    const slot*   claimed = nullptr;  // the claim that was there before the present look began
    std::uint64_t nonce   = 0;
    for (;;) {
        const auto seen = collect(limit, who, tag, now);
        if (seen.counter != nullptr) {
            if (update_counter(*seen.counter, tag, now, change, done)) return true;
            claimed = nullptr;
        } else if (seen.claim == nullptr) {
            if (seen.free == nullptr) return false;
            nonce = last_nonce.fetch_add(1, std::memory_order_relaxed) + 1;
            if (swap(*seen.free, seen.was, {tag | claim_bit, nonce})) claimed = seen.free;
        } else if (seen.claim != claimed || seen.nonce != nonce || !seen.alone) {
            claimed = seen.claim, nonce = seen.nonce;  // not seen alone from its beginning: again
        } else {
            done = {0, first()};
            change(done.after, done.granted);
            auto next = packing_.pack(done.after, now);
            next.head |= tag;
            if (swap(*seen.claim, {tag | claim_bit, nonce}, next)) return true;
            claimed = nullptr;
        }
    }
}

template <policy Policy>
auto table<Policy>::collect(const Policy& limit, const key& who, std::uint64_t tag,
                            const grid& now) noexcept -> collected
{
    collected seen;
    for (auto* among : {&line_of(who.high), &line_of(who.low)})
        for (auto& one : among->slots) {
            const auto is = peek(one);
            if ((is.head & tag_mask_) == tag) note(seen, one, is);
            else if (free_at(limit, is, now)) note_free(seen, one, is);
        }
    // A claim beside the counter is left over from a race: it would only cost time.
    if (seen.counter != nullptr && seen.claim != nullptr)
        swap(*seen.claim, {tag | claim_bit, seen.nonce}, {});
    return seen;
}

/// Keeps the key's counter and its first claim; a second claim is cleared.
template <policy Policy>
void table<Policy>::note(collected& seen, slot& one, const slot& is) const noexcept
{
    if ((is.head & claim_bit) == 0) {
        seen.counter = &one;
    } else if (seen.claim == nullptr) {
        seen.claim = &one, seen.nonce = is.word;
    } else if (seen.claim != &one) {
        seen.alone = false;
        swap(one, is, {});
    }
}

/// The first free slot: an empty one if there is one, since what has recovered by a clock that then
/// steps back has not; and last one that somebody claims.
template <policy Policy>
void table<Policy>::note_free(collected& seen, slot& one, const slot& is) const noexcept
{
    const auto rank = [](const slot& free) {
        return free.head == 0 ? 2 : (free.head & claim_bit) == 0 ? 1 : 0;
    };
    if (seen.free == nullptr || rank(is) > rank(seen.was)) seen.free = &one, seen.was = is;
}

template <policy Policy>
void table<Policy>::clear_claims(const key& who) noexcept
{
    const auto tag = tag_of(who);
    for (auto* among : {&line_of(who.high), &line_of(who.low)})
        for (auto& one : among->slots) {
            const auto is = peek(one);
            if (is.head == (tag | claim_bit)) swap(one, is, {});
        }
}

template <policy Policy>
std::size_t table<Policy>::live(const Policy& limit, instant at) const noexcept
{
    const auto  now   = packing_.at(at);
    std::size_t count = 0;
    for (std::size_t i = 0; i < lines_.size(); ++i)
        for (const auto& one : lines_[i].slots) count += !free_at(limit, peek(one), now);
    return count;
}

/// Empty, only claimed, or as good as untouched.
template <policy Policy>
bool table<Policy>::free_at(const Policy& limit, const slot& is, const grid& now) const noexcept
{
    return is.head == 0 || (is.head & claim_bit) != 0 ||
           limit.recovered_at(packing_.unpack(is, now)) <= now.at;
}

}  // namespace weir
