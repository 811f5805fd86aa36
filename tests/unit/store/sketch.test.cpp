// SPDX-License-Identifier: BSL-1.0

#include "weir/store/sketch.hpp"

#include "catch.hpp"
#include "reference/one_client.hpp"

#include "weir/limiter.hpp"
#include "weir/testing/store_suite.hpp"

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

using namespace std::chrono_literals;
using reference::t;

namespace {

template <class Policy>
void holds_every_claim()
{
    weir::sketch_store counters;
    weir::testing::store_suite<Policy>(counters,
                                       [](bool held, std::string_view claim) {
                                           INFO(claim);
                                           CHECK(held);
                                       },
                                       {.exact = false});
}

}  // namespace

TEST_CASE("the sketch store shows what a store of estimates must, under fixed_window", "[sketch]")
{
    holds_every_claim<weir::fixed_window>();
}

TEST_CASE("the sketch store shows what a store of estimates must, under sliding_window", "[sketch]")
{
    holds_every_claim<weir::sliding_window>();
}

TEST_CASE("the sketch store shows what a store of estimates must, under gcra", "[sketch]")
{
    holds_every_claim<weir::gcra>();
}

TEST_CASE("no key of a crowded sketch is admitted more often than its limit", "[sketch]")
{
    const auto check = [](const auto& limit) {
        weir::sketch_store  counters({.size = {.width = 50, .depth = 2}});
        const weir::limiter limiter("ip", limit, counters);
        for (int who = 0; who < 500; ++who) {
            int admitted = 0;
            for (int i = 0; i < 8; ++i) admitted += bool(limiter.admit(std::to_string(who), t(i)));
            REQUIRE(admitted <= 5);
        }
    };
    check(weir::fixed_window{.limit = 5, .window = 1h});
    check(weir::sliding_window{.limit = 5, .window = 1h});
    check(weir::gcra{.limit = 5, .window = 1h});
}

TEST_CASE("the memory of a sketch is its size, whatever keys come", "[sketch]")
{
    weir::sketch_store  counters({.size = {.width = 1'000, .depth = 4}});
    const weir::limiter limiter("ip", weir::fixed_window{.limit = 5, .window = 1h}, counters);
    const auto          before = counters.bytes();
    for (int who = 0; who < 10'000; ++who) (void)limiter.admit(std::to_string(who), t(0));
    CHECK(counters.bytes() == before);
    CHECK(before < 1'000 * 4 * 16 + 4'096);
}

TEST_CASE(
    "the present error of a sketch is none when empty, more when used, and none when all is over",
    "[sketch]")
{
    constexpr weir::fixed_window limit{.limit = 5, .window = 1min};
    weir::sketch_store           counters({.size = {.width = 100, .depth = 2}});
    const weir::limiter          limiter("ip", limit, counters);
    const auto                   error = [&](std::int64_t ms) {
        return counters.enrol("ip", limit)->present_error(limit, t(ms));
    };
    CHECK(error(0) == 0);
    for (int who = 0; who < 40; ++who) (void)limiter.admit(std::to_string(who), t(0));
    CHECK(error(0) > 0.02);
    CHECK(error(0) < 0.3);
    CHECK(error(60'000) == 0);
}

TEST_CASE("a sketch store without cells is refused", "[sketch]")
{
    CHECK_THROWS_AS(weir::sketch_store({.size = {.width = 0}}), std::invalid_argument);
    CHECK_THROWS_AS(weir::sketch_store({.size = {.width = 8, .depth = 9}}), std::invalid_argument);
}
