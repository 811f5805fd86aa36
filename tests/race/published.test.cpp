// SPDX-License-Identifier: BSL-1.0

#include "weir/published.hpp"

#include "catch.hpp"
#include "race/crew.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

TEST_CASE("a value that is replaced while read is the old one or the new one, whole", "[published]")
{
    using value = std::array<std::uint64_t, 4>;
    weir::published<value> held(value{});
    std::atomic<int>       torn{0}, back{0};
    std::atomic<bool>      over{false};
    const auto             replace = [&] {
        for (std::uint64_t i = 1; i <= race::many(1'000'000); ++i) held.store({i, i, i, i});
        over = true;
    };
    const auto read = [&] {
        for (std::uint64_t latest = 0; !over;) {
            const auto seen = held.load();
            torn += seen != value{seen[0], seen[0], seen[0], seen[0]};
            back += seen[0] < latest;
            latest = seen[0];
        }
    };
    race::all_at_once(
        3, 2,
        [&](std::size_t thread, std::size_t round) {
            if (round == 1) thread == 0 ? replace() : read();  // round 0: all are here
        },
        [](std::size_t) {});
    CHECK(torn == 0);
    CHECK(back == 0);
}

TEST_CASE("of many threads that replace a value at once none leaves a mixture", "[published]")
{
    using value = std::array<std::uint64_t, 4>;
    weir::published<value> held(value{});
    std::atomic<int>       torn{0};
    race::all_at_once(
        4, race::many(50'000),
        [&](std::size_t thread, std::size_t round) {
            const auto mine = round * 4 + thread;
            held.store({mine, mine, mine, mine});
        },
        [&](std::size_t round) {
            const auto seen = held.load();
            torn += seen != value{seen[0], seen[0], seen[0], seen[0]} || seen[0] / 4 != round;
        });
    CHECK(torn == 0);
}
