// SPDX-License-Identifier: BSL-1.0

#include "weir/time.hpp"

#include "catch.hpp"
#include "race/crew.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

using namespace std::chrono_literals;

// Each thread compares its reading with the latest that any thread had before it read. It goes on
// for so long that the system clock is looked at again in between.
TEST_CASE("now() is never before what another thread has read already", "[time]")
{
    std::atomic<weir::instant> latest{weir::now()};
    std::atomic<int>           back{0};
    const auto                 end = std::chrono::steady_clock::now() + 2500ms;
    race::all_at_once(
        4, 1,
        [&](std::size_t, std::size_t) {
            while (std::chrono::steady_clock::now() < end)
                for (int i = 0; i < 100; ++i) {
                    auto       before = latest.load();
                    const auto read   = weir::now();
                    back += read < before;
                    while (before < read && !latest.compare_exchange_weak(before, read)) {}
                }
        },
        [](std::size_t) {});
    CHECK(back == 0);
}

// A steady clock that seems to run behind is a system clock that seems to step forward, by another
// step for each thread.
TEST_CASE("the offset of now() only grows, whichever thread sees which system time", "[time]")
{
    const auto                steady = weir::detail::steady_ticks();
    std::atomic<std::int64_t> largest{0};
    std::atomic<int>          back{0};
    race::all_at_once(
        2, race::many(200'000),
        [&](std::size_t thread, std::size_t round) {
            const auto step = static_cast<std::int64_t>(round * 1000 + thread * 500);
            weir::detail::follow_system_clock(steady - step);
            auto       before = largest.load();
            const auto seen   = weir::detail::present.offset.load();
            back += seen < before;
            while (before < seen && !largest.compare_exchange_weak(before, seen)) {}
        },
        [](std::size_t) {});
    CHECK(back == 0);
}
