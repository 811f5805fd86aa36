// SPDX-License-Identifier: BSL-1.0

// Guesses at the same moment, in one process.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "weir/signin/guard.hpp"
#include "weir/store/memory.hpp"
#include "weir/testing/manual_clock.hpp"

#include "../crew.hpp"
#include "catch.hpp"

using namespace std::chrono_literals;
using weir::lockout;

namespace {

constexpr auto at = weir::testing::manual_clock::new_year;

template <class Work>
void in_threads(int count, Work&& work)
{
    std::vector<std::thread> all;
    for (int n = 0; n < count; ++n) all.emplace_back([&, n] { work(n); });
    for (auto& thread : all) thread.join();
}

}  // namespace

TEST_CASE("of 200 guesses at once exactly 5 are evaluated, and one lockout begins (L21, L22)",
          "[race][lockout]")
{
    weir::memory_store counters({.max_keys = 1'000});
    const weir::guard  door("signin", lockout{}, counters);
    for (std::size_t round = 0; round < race::many(100); ++round) {
        const auto       who       = std::to_string(round);
        std::atomic<int> evaluated = 0;
        in_threads(8, [&](int) {
            for (int n = 0; n < 25; ++n) {
                auto attempt = door.claim(who, at);
                evaluated += bool(attempt);
                attempt.failed();
            }
        });
        REQUIRE(evaluated == 5);
        const auto seen = door.look(who, at);
        REQUIRE((seen->locked && seen->level == 0 && seen->until == at + 15min));
    }
}

TEST_CASE("of guesses of which some succeed at the same moment exactly 5 fail", "[race][lockout]")
{
    weir::memory_store counters({.max_keys = 1'000});
    const weir::guard  door("signin", lockout{}, counters,
                            {.tiers = {{.failures = 20, .window = 24h, .first = 24h}}});
    for (std::size_t round = 0; round < race::many(100); ++round) {
        const auto       who    = std::to_string(round);
        std::atomic<int> failed = 0;
        in_threads(4, [&](int thread) {
            for (int n = 0; n < 50; ++n) {
                auto attempt = door.claim(who, at);
                if (!attempt) continue;
                if ((n + thread) % 3 == 0) ++failed, attempt.failed();
                else attempt.succeeded(at);
            }
        });
        REQUIRE(failed <= 5);
        REQUIRE(door.look(who, at)->failures == static_cast<std::uint64_t>(failed));
        REQUIRE(door.look(who, at, 1)->failures == static_cast<std::uint64_t>(failed));
    }
}

TEST_CASE("threads on a full table never free a closed door", "[race][lockout]")
{
    weir::memory_store counters({.max_keys = 50});
    const weir::guard  door("signin", lockout{.failures = 2}, counters);
    for (int n = 0; n < 2; ++n) (void)door.claim("bob", at);
    std::atomic<int> opened = 0;
    in_threads(4, [&](int thread) {
        for (std::size_t n = 0; n < race::many(20'000); ++n) {
            (void)door.claim(std::to_string(thread) + "." + std::to_string(n), at);
            opened += bool(door.claim("bob", at));
        }
    });
    CHECK(opened == 0);
}
