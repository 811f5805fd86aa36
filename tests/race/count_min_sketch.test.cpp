// SPDX-License-Identifier: BSL-1.0

#include "weir/count_min_sketch.hpp"

#include "catch.hpp"
#include "race/crew.hpp"
#include "weir/limiter.hpp"
#include "weir/policy/fixed_window.hpp"
#include "weir/policy/gcra.hpp"
#include "weir/policy/sliding_window.hpp"
#include "weir/store/sketch.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

using namespace std::chrono_literals;

namespace {

constexpr weir::instant start{std::chrono::sys_days(std::chrono::year(2026) / 3 / 1)};

/// The start of a round. Rounds are so far apart that all of the round before has recovered.
constexpr weir::instant at_round(std::size_t round)
{
    return start + 10s * static_cast<int>(round);
}

/// Eight keys that share cells in every row of a sketch eight cells wide, each in another way.
constexpr weir::key crowded(std::uint64_t number)
{
    return {number << 61 | number * 0x9e3779b97f4a7c15 >> 3, number * 0xd1b54a32d192ed03};
}

}  // namespace

TEST_CASE("raised by many threads at once, no key is counted too low", "[count_min_sketch]")
{
    constexpr std::uint64_t  keys = 8, each = 30;
    const std::size_t        rounds = race::many(5'000);
    std::atomic<int>         low{0};
    std::atomic<std::size_t> exact{0};
    for (const std::size_t threads : {2U, 8U}) {
        weir::count_min_sketch cells({.width = 8, .depth = 4});
        race::all_at_once(
            threads, rounds,
            [&](std::size_t thread, std::size_t) {
                for (std::uint64_t i = 0; i < keys * each; ++i)
                    cells.raise(crowded(thread % 2 == 0 ? i % keys : keys - 1 - i % keys), 1);
            },
            [&](std::size_t) {
                for (std::uint64_t i = 0; i < keys; ++i)
                    low += cells.estimate(crowded(i)) < threads * each;
                cells.clear();
                for (std::uint64_t i = 0; i < keys; ++i) exact += cells.estimate(crowded(i)) == 0;
            });
    }
    CHECK(low == 0);
    CHECK(exact == 2 * rounds * keys);
}

TEST_CASE("a single key raised by two threads in step is counted exactly or over, never under",
          "[count_min_sketch]")
{
    weir::count_min_sketch cells({.width = 64, .depth = 4});
    std::atomic<int>       low{0};
    race::all_at_once(
        2, race::many(300'000),
        [&](std::size_t, std::size_t round) { cells.raise(crowded(round % 3), 1); },
        [&](std::size_t round) {
            const auto told = cells.estimate(crowded(round % 3));
            low += told < 2;
            if (round % 3 == 2) cells.clear();
        });
    CHECK(low == 0);
}

TEST_CASE("added and subtracted by many threads at once, the counts come back to zero",
          "[count_min_sketch]")
{
    weir::count_min_sketch cells({.width = 8, .depth = 4});
    std::atomic<int>       low{0};
    race::all_at_once(
        4, 1,
        [&](std::size_t thread, std::size_t) {
            for (int i = 0; i < 50'000; ++i) {
                low += cells.add(crowded(thread), 3) < 3;
                cells.subtract(crowded(thread), 3);
            }
        },
        [](std::size_t) {});
    CHECK(low == 0);
    for (std::uint64_t i = 0; i < 4; ++i) CHECK(cells.estimate(crowded(i)) == 0);
}

TEMPLATE_TEST_CASE("a key in a sketch asked by many threads at once is admitted its limit exactly",
                   "[sketch]", weir::fixed_window, weir::sliding_window, weir::gcra)
{
    constexpr int      limit = 50;
    weir::sketch_store counters({.size = {.width = 64}});
    weir::limiter      per_key("sketch", TestType{.limit = limit, .window = 1s}, counters);
    for (const std::size_t threads : {2U, 8U}) {
        std::atomic<int> admitted{0}, over{0}, under{0};
        race::all_at_once(
            threads, race::many(5'000),
            [&](std::size_t, std::size_t round) {
                for (int i = 0; i < limit; ++i)
                    admitted += bool(per_key.admit(crowded(1), at_round(round + threads * 10'000)));
            },
            [&](std::size_t) {
                const auto units = admitted.exchange(0);
                over += units > limit;
                under += units < limit;
            });
        CHECK(over == 0);
        CHECK(under == 0);
    }
}

TEMPLATE_TEST_CASE("keys that share cells of a sketch are never admitted over their limits",
                   "[sketch]", weir::fixed_window, weir::sliding_window, weir::gcra)
{
    constexpr int           limit = 10;
    constexpr std::uint64_t keys  = 4;
    weir::sketch_store      counters({.size = {.width = 4}});
    weir::limiter           per_key("shared", TestType{.limit = limit, .window = 1s}, counters);
    std::array<std::atomic<int>, keys> admitted{};
    std::atomic<int>                   over{0};
    race::all_at_once(
        4, race::many(10'000),
        [&](std::size_t thread, std::size_t round) {
            for (std::uint64_t i = 0; i < keys * limit; ++i) {
                const auto which = (i + thread) % keys;
                admitted[which] += bool(per_key.admit(crowded(which), at_round(round)));
            }
        },
        [&](std::size_t) {
            for (auto& one : admitted) over += one.exchange(0) > limit;
        });
    CHECK(over == 0);
}
