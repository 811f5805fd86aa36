// SPDX-License-Identifier: BSL-1.0

#include "weir/remote/breaker.hpp"

#include "catch.hpp"
#include "race/crew.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>

using namespace std::chrono_literals;
using weir::remote::breaker;

TEST_CASE("of many threads that find a breaker open after its pause exactly one probes",
          "[breaker]")
{
    breaker          one({}, 1);
    std::atomic<int> probes{0}, wrong{0};
    const auto       at = [](std::size_t round) {
        return breaker::time_point{1s * static_cast<int>(round + 1)};
    };
    for (int i = 0; i < 5; ++i) one.failed(breaker::time_point{});
    race::all_at_once(
        4, race::many(100'000),
        [&](std::size_t, std::size_t round) { probes += one.allow(at(round)); },
        [&](std::size_t) { wrong += probes.exchange(0) != 1; });
    CHECK(wrong == 0);
}

TEST_CASE("of many threads that fail at once one opens it, and of many that succeed one closes it",
          "[breaker]")
{
    breaker          one({}, 1);
    std::atomic<int> opened{0}, closed{0}, wrong{0};
    race::all_at_once(
        4, race::many(100'000),
        [&](std::size_t, std::size_t round) {
            if (round % 2 != 0) closed += one.succeeded();
            else
                for (int i = 0; i < 2; ++i) opened += one.failed(breaker::time_point{});
        },
        [&](std::size_t round) {
            const int due = round % 2 == 0;
            wrong += opened.exchange(0) != due || closed.exchange(0) != 1 - due;
        });
    CHECK(wrong == 0);
}

TEST_CASE("a breaker is opened and closed in turn, whatever fails and succeeds at once",
          "[breaker]")
{
    breaker          one({.failures = 2}, 1);
    std::atomic<int> opened{0}, closed{0}, wrong{0};
    race::all_at_once(
        4, race::many(200'000),
        [&](std::size_t thread, std::size_t) {
            if (thread % 2 == 0) opened += one.failed(breaker::time_point{});
            else closed += one.succeeded();
        },
        [&](std::size_t) { wrong += opened - closed != int(one.open()); });
    CHECK(wrong == 0);
    CHECK(opened > 0);
}
