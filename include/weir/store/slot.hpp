// SPDX-License-Identifier: BSL-1.0
#pragma once

// Sixteen bytes that change in one step: what the tables of the in-process stores are made of.
// No pointers and no lock word, so that a table may one day lie in shared memory and outlive a
// user killed at any instruction.

#include <cstdint>

#if defined(__SANITIZE_THREAD__)
#define WEIR_SWAP_BY_BUILTIN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEIR_SWAP_BY_BUILTIN 1
#endif
#endif
#if !defined(__x86_64__)
#define WEIR_SWAP_BY_BUILTIN 1
#endif

namespace weir {

/// `head` says whose it is, `word` holds the state (see packing.hpp). All zero: empty.
struct alignas(16) slot {
    std::uint64_t head = 0;
    std::uint64_t word = 0;

    friend constexpr bool operator==(const slot&, const slot&) = default;
};

/// Both halves of one moment: the word is read between two equal reads of the head, which changes
/// whenever a word could mean something else.
[[nodiscard]] inline slot peek(const slot& at) noexcept
{
    for (;;) {
        const auto head = __atomic_load_n(&at.head, __ATOMIC_SEQ_CST);
        const auto word = __atomic_load_n(&at.word, __ATOMIC_SEQ_CST);
        if (head == __atomic_load_n(&at.head, __ATOMIC_SEQ_CST)) [[likely]]
            return {head, word};
    }
}

/// Replaces `expected` by `desired` as one step; false if something else was there.
inline bool swap(slot& at, const slot& expected, const slot& desired) noexcept
{
#if !defined(WEIR_SWAP_BY_BUILTIN)
    // GCC 12 turns a 16-byte std::atomic into a call of libatomic even with -mcx16.
    bool done = false;
    auto head = expected.head;
    auto word = expected.word;
    asm volatile("lock cmpxchg16b %1"
                 : "=@ccz"(done), "+m"(at), "+a"(head), "+d"(word)
                 : "b"(desired.head), "c"(desired.word)
                 : "memory");
    return done;
#else
    // The thread sanitizer must see the swap; other machines may want -latomic.
    __extension__ using both = unsigned __int128;
    auto       seen          = both{expected.word} << 64 | expected.head;
    const auto next          = both{desired.word} << 64 | desired.head;
    return __atomic_compare_exchange_n(reinterpret_cast<both*>(&at), &seen, next, false,
                                       __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
#endif
}

}  // namespace weir
