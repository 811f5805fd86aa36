// SPDX-License-Identifier: BSL-1.0

#include "weir/store/memory.hpp"

#include "catch.hpp"
#include "race/crew.hpp"
#include "weir/limiter.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

using namespace std::chrono_literals;

namespace {

constexpr weir::instant start{std::chrono::sys_days(std::chrono::year(2026) / 3 / 1)};

/// A key of its own for each number, spread like a digest (the finish of splitmix64).
constexpr weir::key numbered(std::uint64_t number)
{
    const auto spread = [](std::uint64_t x) {
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
        x = (x ^ x >> 27) * 0x94d049bb133111eb;
        return x ^ x >> 31;
    };
    return {spread(number * 2 + 1), spread(number * 2 + 2)};
}

/// The start of a round. Rounds are so far apart that all of the round before has recovered.
constexpr weir::instant at_round(std::size_t round)
{
    return start + 10s * static_cast<int>(round);
}

/// Wrong rounds among `rounds`, when `threads` at once ask for the last unit of a key.
template <class Policy>
int contested_last_units(const Policy& limit, std::size_t threads, std::size_t rounds)
{
    weir::memory_store counters({.max_keys = 64});
    weir::limiter      per_key("last", limit, counters);
    std::atomic<int>   admitted{0}, wrong{0};
    const auto         leave_one = [&](std::size_t round) {
        per_key.charge(numbered(round), {.cost = limit.limit - 1}, at_round(round));
    };
    leave_one(0);
    race::all_at_once(
        threads, rounds,
        [&](std::size_t, std::size_t round) {
            const auto made = per_key.admit(numbered(round), at_round(round));
            admitted += bool(made);
            wrong += made.left != 0 || made.basis != weir::basis::counted;
        },
        [&](std::size_t round) {
            wrong += admitted.exchange(0) != 1;
            leave_one(round + 1);
        });
    return wrong;
}

/// Wrong rounds when `threads` at once ask for the one unit of each of three keys that nobody asked
/// for before. The table has twelve slots, so that claims of one key lie in another's way, and all
/// slots are let again every few rounds.
template <class Policy>
int contested_insertions(const Policy& limit, std::size_t threads, std::size_t rounds)
{
    constexpr std::size_t            keys = 3;
    weir::memory_store               counters({.max_keys = 4});
    weir::limiter                    per_key("new", limit, counters);
    std::array<std::atomic<int>, keys> admitted{};
    std::atomic<int>                 wrong{0};
    race::all_at_once(
        threads, rounds,
        [&](std::size_t thread, std::size_t round) {
            for (std::size_t i = 0; i < keys; ++i) {
                const auto which = thread % 2 == 0 ? i : keys - 1 - i;
                const auto made  = per_key.admit(numbered(round * keys + which), at_round(round));
                admitted[which] += bool(made);
                wrong += made.basis != weir::basis::counted;
            }
        },
        [&](std::size_t) {
            for (auto& one : admitted) wrong += one.exchange(0) != 1;
        });
    return wrong;
}

}  // namespace

TEMPLATE_TEST_CASE("the last unit of a key goes to exactly one of 64 threads, 10,000 times over",
                   "[memory]", weir::fixed_window, weir::sliding_window, weir::gcra)
{
    CHECK(contested_last_units(TestType{.limit = 10, .window = 1s}, 64, 10'000) == 0);
}

TEMPLATE_TEST_CASE("the last unit of a key goes to exactly one of two threads in step", "[memory]",
                   weir::fixed_window, weir::sliding_window, weir::gcra)
{
    CHECK(contested_last_units(TestType{.limit = 10, .window = 1s}, 2, race::many(300'000)) == 0);
}

TEMPLATE_TEST_CASE("a new key that two threads insert at once gets one counter", "[memory]",
                   weir::fixed_window, weir::sliding_window, weir::gcra)
{
    CHECK(contested_insertions(TestType{.limit = 1, .window = 1s}, 2, race::many(300'000)) == 0);
}

TEMPLATE_TEST_CASE("a new key that 16 threads insert at once gets one counter", "[memory]",
                   weir::fixed_window, weir::sliding_window, weir::gcra)
{
    CHECK(contested_insertions(TestType{.limit = 1, .window = 1s}, 16, race::many(20'000)) == 0);
}

// Each round is one window further. Half of its keys were there the round before, and their slots
// count as recovered: some threads roll them on while others let them to the new keys.
TEMPLATE_TEST_CASE("a slot that is let again while its old key spends admits no unit too many",
                   "[memory]", weir::fixed_window, weir::gcra)
{
    constexpr std::size_t keys = 12, threads = 4;
    constexpr int         limit = 2;
    for (const auto overflow : {weir::overflow::sketch, weir::overflow::refuse}) {
        weir::memory_store counters({.max_keys = 8, .overflow = overflow});
        weir::limiter per_key("churn", TestType{.limit = limit, .window = 1s}, counters);
        std::array<std::atomic<int>, keys>  admitted{};
        std::array<std::atomic<bool>, keys> without_slot{};
        std::atomic<int>                    over{0}, under{0};
        race::all_at_once(
            threads, race::many(40'000),
            [&](std::size_t thread, std::size_t round) {
                for (std::size_t i = 0; i < 2 * keys; ++i) {
                    const auto which = (i + thread * 5) % keys;
                    const auto made  = per_key.admit(numbered(round * keys / 2 + which),
                                                     start + 1s * static_cast<int>(round));
                    admitted[which] += bool(made);
                    if (made.basis != weir::basis::counted) without_slot[which] = true;
                }
            },
            [&](std::size_t) {
                for (std::size_t i = 0; i < keys; ++i) {
                    const auto units = admitted[i].exchange(0);
                    over += units > limit;
                    under += units < limit && !without_slot[i].exchange(false);
                }
            });
        CHECK(over == 0);
        CHECK(under == 0);
    }
}

// The key has no slot and is counted in the sketch; meanwhile the operator forgets a key in its
// way, so that it gets one, with what the sketch knows. It is the only key in the sketch: what is
// admitted is never over its limit, and short of it by one ask at most for each thread caught in
// the move.
TEMPLATE_TEST_CASE("a key that moves from the sketch into a slot takes along what it spent",
                   "[memory]", weir::fixed_window, weir::sliding_window, weir::gcra)
{
    constexpr std::size_t slots = 8, threads = 4;
    constexpr int         limit = 6;
    weir::memory_store    counters({.max_keys = 64});  // no more than 64 lines
    weir::limiter         per_key("moving", TestType{.limit = limit, .window = 1s}, counters);

    // The first line is that of halves near 0, and the second but one, whatever the number of
    // lines, that of halves near 2^64 - 1. Low bits make the tag.
    const auto far    = ~std::uint64_t{0} << 32;
    const auto in_way = [&](std::uint64_t i) {
        return i % 2 == 0 ? weir::key{i, 0} : weir::key{far | i, far};
    };
    const weir::key who{1'000, far};

    std::atomic<int> admitted{0}, over{0}, under{0}, before{0}, after{0};
    const auto       fill = [&](std::size_t round) {
        for (std::uint64_t i = 0; i < slots; ++i) (void)per_key.admit(in_way(i), at_round(round));
    };
    fill(0);
    race::all_at_once(
        threads, race::many(60'000),
        [&](std::size_t thread, std::size_t round) {
            const auto ask = [&] {
                const auto made = per_key.admit(who, at_round(round));
                admitted += bool(made);
                (made.basis == weir::basis::counted ? after : before) += bool(made);
            };
            if (thread == 0) (void)per_key.forget(in_way(round % slots), at_round(round));
            else for (int i = 0; i < limit; ++i) ask();
        },
        [&](std::size_t round) {
            const auto units = admitted.exchange(0);
            over += units > limit;
            under += units < limit - static_cast<int>(threads - 1);
            fill(round + 1);
        });
    CHECK(over == 0);
    CHECK(under == 0);
    CHECK(before > 0);
    CHECK(after > 0);
}

TEMPLATE_TEST_CASE("a key in the overflow sketch of a full table is never admitted over its limit",
                   "[memory]", weir::fixed_window, weir::sliding_window, weir::gcra)
{
    constexpr int      limit = 50;
    weir::memory_store counters({.max_keys = 64});
    weir::limiter      per_key("full", TestType{.limit = limit, .window = 1s}, counters);
    std::uint64_t      next = 1;
    const auto         find_one_without_slot = [&](weir::instant at) {
        for (;; ++next)
            if (per_key.admit(numbered(next), at).basis == weir::basis::estimated)
                return numbered(next++);
    };
    std::atomic<int> admitted{1}, over{0}, under{0};
    weir::key        who = find_one_without_slot(at_round(0));
    race::all_at_once(
        8, race::many(2'000),
        [&](std::size_t, std::size_t round) {
            for (int i = 0; i < limit; ++i) admitted += bool(per_key.admit(who, at_round(round)));
        },
        [&](std::size_t round) {
            const auto units = admitted.exchange(1);
            over += units > limit;
            under += units < limit;
            who = find_one_without_slot(at_round(round + 1));
        });
    CHECK(over == 0);
    CHECK(under == 0);  // it is the only key in the sketch
}
