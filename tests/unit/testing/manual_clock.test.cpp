// SPDX-License-Identifier: BSL-1.0

#include "weir/testing/manual_clock.hpp"

#include "catch.hpp"

#include <chrono>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using weir::testing::manual_clock;

TEST_CASE("a manual clock starts at 2026 and stands still", "[manual_clock]")
{
    const manual_clock clock;
    CHECK(clock.now() == std::chrono::sys_days(std::chrono::year(2026) / 1 / 1));
    CHECK(clock.function()() == clock.now());
}

TEST_CASE("a manual clock moves as it is told, and backward too", "[manual_clock]")
{
    manual_clock clock(weir::instant(10s));
    clock.advance(5s);
    CHECK(clock.now() == weir::instant(15s));
    clock.advance(-20s);
    CHECK(clock.now() == weir::instant(-5s));
    clock.set(weir::instant::max());
    clock.advance(1ns);
    CHECK(clock.now() == weir::instant::max());
}

TEST_CASE("steps of several threads add up", "[manual_clock]")
{
    manual_clock             clock(weir::instant(0s));
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            for (int n = 0; n < 1'000; ++n) clock.advance(1ns);
        });
    for (auto& one : threads) one.join();
    CHECK(clock.now() == weir::instant(4'000ns));
}
