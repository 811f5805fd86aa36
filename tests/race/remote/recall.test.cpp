// SPDX-License-Identifier: BSL-1.0

#include "weir/remote/recall.hpp"

#include "catch.hpp"
#include "race/crew.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace {

using value = std::array<std::uint64_t, 4>;

/// Keys of one set: ten of them contend for eight ways.
constexpr weir::key neighbour(std::uint64_t number) { return {number + 1, 42}; }

/// A value that shows whose it is, and whether it is whole.
constexpr value value_of(std::uint64_t number, std::uint64_t round)
{
    return {number, round, number ^ round, ~round};
}
constexpr bool whole(const value& seen, std::uint64_t number)
{
    return seen == value_of(number, seen[1]);
}

}  // namespace

TEST_CASE("keys that push each other out are found whole and as their own, or not at all",
          "[recall]")
{
    weir::remote::recall<value> known(2);
    std::atomic<int>            wrong{0}, found{0};
    race::all_at_once(
        4, race::many(100'000),
        [&](std::size_t thread, std::size_t round) {
            value seen{};
            if (thread < 2)
                known.keep(neighbour((round + thread) % 10),
                           value_of((round + thread) % 10, round));
            for (std::uint64_t number = 0; number < 10; ++number) {
                if (!known.find(neighbour(number), seen)) continue;
                wrong += !whole(seen, number);
                ++found;
            }
        },
        [](std::size_t) {});
    CHECK(wrong == 0);
    CHECK(found > 0);
}

TEST_CASE("what was kept before a drop is gone after it, whoever writes beside it", "[recall]")
{
    weir::remote::recall<value> known(2);
    std::atomic<int>            wrong{0};
    race::all_at_once(
        4, race::many(100'000),
        [&](std::size_t thread, std::size_t round) {
            value seen{};
            // Threads 0 and 1 have a key each, which nobody else keeps; the others are in the way.
            const auto own = thread < 2 ? thread : 2 + round % 8;
            known.keep(neighbour(own), value_of(own, round));
            if (thread >= 2) return;
            known.drop(neighbour(own));
            wrong += known.find(neighbour(own), seen);
        },
        [](std::size_t) {});
    CHECK(wrong == 0);
}

TEST_CASE("a key that many keep at once is there once: one drop is enough", "[recall]")
{
    weir::remote::recall<value> known(2);
    std::atomic<int>            wrong{0}, kept{0};
    race::all_at_once(
        3, race::many(100'000),
        [&](std::size_t thread, std::size_t round) {
            known.keep(neighbour(0), value_of(0, round * 3 + thread));
        },
        [&](std::size_t) {
            value seen{};
            kept += known.find(neighbour(0), seen);
            known.drop(neighbour(0));
            wrong += known.find(neighbour(0), seen);
        });
    CHECK(wrong == 0);
    CHECK(kept == static_cast<int>(race::many(100'000)));  // of writers that meet one goes on
}

TEST_CASE("of values kept on a condition the largest stays, in whatever order they come",
          "[recall]")
{
    weir::remote::recall<std::uint64_t> known(2);
    std::atomic<int>                    wrong{0};
    race::all_at_once(
        4, race::many(100'000),
        [&](std::size_t thread, std::size_t round) {
            const auto mine = round * 4 + (thread + round) % 4;
            known.keep_if(neighbour(0), mine, [=](std::uint64_t old) { return old < mine; });
        },
        [&](std::size_t round) {
            std::uint64_t seen = 0;
            wrong += !known.find(neighbour(0), seen) || seen != round * 4 + 3;
        });
    CHECK(wrong == 0);
}
