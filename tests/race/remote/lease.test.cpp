// SPDX-License-Identifier: BSL-1.0

#include "weir/remote/lease.hpp"

#include "catch.hpp"
#include "race/crew.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

using namespace std::chrono_literals;

namespace {

constexpr weir::instant      start{std::chrono::sys_days(std::chrono::year(2026) / 3 / 1)};
constexpr weir::fixed_window limit{.limit = 1'000'000'000, .window = 24h};

weir::ask<weir::fixed_window> question(std::uint64_t number, std::uint64_t cost)
{
    return {.who = {number, 42}, .limit = limit, .cost = cost};
}

weir::reply<weir::fixed_window> granted(std::uint64_t times)
{
    weir::reply<weir::fixed_window> said{.granted = times};
    said.at = said.asked = start;
    return said;
}

}  // namespace

TEST_CASE("no unit of a lease is given twice, and none is lost, while more is put", "[lease]")
{
    weir::remote::leases<weir::fixed_window> leases(4);
    std::atomic<std::uint64_t>               put{0}, taken{0};
    std::atomic<int>                         wrong{0};
    race::all_at_once(
        4, race::many(100'000),
        [&](std::size_t thread, std::size_t round) {
            const auto cost = 1 + (thread + round) % 3;
            if (thread == 0) {
                put += 4 * cost;
                leases.put(question(1, cost), 4, granted(5), start);
            } else if (leases.take(question(1, cost), start)) {
                taken += cost;
            }
        },
        [&](std::size_t) { wrong += taken > put; });
    CHECK(wrong == 0);
    while (leases.take(question(1, 1), start)) ++taken;
    CHECK(taken == put);
}

TEST_CASE("of keys that push each other's leases out none takes more than was put for it",
          "[lease]")
{
    constexpr std::size_t                    keys = 6;  // in a set of four
    weir::remote::leases<weir::fixed_window> leases(4);
    std::atomic<std::uint64_t>               put[keys]{}, taken[keys]{};
    std::atomic<int>                         wrong{0};
    race::all_at_once(
        4, race::many(100'000),
        [&](std::size_t thread, std::size_t round) {
            const auto number = (round * 5 + thread) % keys;
            put[number] += 2;
            leases.put(question(number + 1, 1), 2, granted(3), start);
            for (std::size_t i = 0; i < keys; ++i)
                if (leases.take(question(i + 1, 1), start)) ++taken[i];
        },
        [&](std::size_t) {
            for (std::size_t i = 0; i < keys; ++i) wrong += taken[i] > put[i];
        });
    CHECK(wrong == 0);
    CHECK(taken[0] > 0);
}

TEST_CASE("of many threads that find a lease empty at once exactly one asks ahead", "[lease]")
{
    weir::remote::leases<weir::fixed_window> leases(4);
    std::atomic<int>                         asking{0}, wrong{0};
    leases.put(question(1, 1), 0, granted(100), start);
    race::all_at_once(
        4, race::many(100'000),
        [&](std::size_t, std::size_t round) {
            asking +=
                leases.ahead(question(1, 1), 10, start + 2s * static_cast<int>(round % 1'000)) > 0;
        },
        [&](std::size_t) {
            wrong += asking.exchange(0) != 1;
            leases.put(question(1, 1), 1, granted(2), start);
            wrong += !leases.take(question(1, 1), start);
        });
    CHECK(wrong == 0);
}
