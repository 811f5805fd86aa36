// SPDX-License-Identifier: BSL-1.0

#include "weir/time.hpp"

#include "catch.hpp"
#include "crew.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>

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

// Steps of the system clock, as the offset sees them: it is raised by whoever is ahead and lowered
// by nobody.
TEST_CASE("the offset of now() only grows, whichever thread sees which system time", "[time]")
{
    const auto       steady = weir::detail::steady_ticks();
    std::atomic<int> back{0};
    race::all_at_once(
        4, 20'000,
        [&](std::size_t thread, std::size_t round) {
            const auto before = weir::detail::present.offset.load();
            // A steady clock that seems to run ahead is a system clock that seems set back.
            weir::detail::follow_system_clock(steady + static_cast<int>(thread * 1'000'000 + round));
            back += weir::detail::present.offset.load() < before;
        },
        [](std::size_t) {});
    CHECK(back == 0);
}
