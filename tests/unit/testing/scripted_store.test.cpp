// SPDX-License-Identifier: BSL-1.0

#include "weir/testing/scripted_store.hpp"

#include "catch.hpp"
#include "reference/one_client.hpp"

#include "weir/limiter.hpp"
#include "weir/policy/gcra.hpp"
#include "weir/testing/manual_clock.hpp"

#include <chrono>
#include <cstdint>
#include <optional>

using namespace std::chrono_literals;
using reference::t;
using weir::basis;
using weir::verdict;
using weir::testing::scripted_store;

static_assert(weir::store_of<scripted_store, weir::fixed_window>);
static_assert(weir::store_of<scripted_store, weir::sliding_window>);
static_assert(weir::store_of<scripted_store, weir::gcra>);

TEST_CASE("a script is followed line by line and its last line repeated", "[scripted_store]")
{
    scripted_store      counters({{verdict::admitted},
                                  {verdict::refused, basis::remembered},
                                  {verdict::admitted, basis::store_unavailable}});
    const weir::limiter limiter("ip", weir::fixed_window{.limit = 5, .window = 1min}, counters);
    CHECK(limiter.admit("a", t(0)).basis == basis::counted);
    const auto refused = limiter.admit("b", t(0));
    CHECK(!refused);
    CHECK(refused.basis == basis::remembered);
    for (int i = 0; i < 3; ++i) {
        const auto open = limiter.admit("c", t(0));
        CHECK(open);
        CHECK(open.basis == basis::store_unavailable);
    }
}

TEST_CASE("the figures of a script are those of a counter just begun or just used up",
          "[scripted_store]")
{
    scripted_store      counters({{verdict::admitted}, {verdict::refused}});
    const weir::limiter limiter("ip", weir::gcra{.limit = 5, .window = 10s}, counters);
    const auto          admitted = limiter.admit("a", {.cost = 2}, t(0));
    CHECK(admitted.left == 3);
    CHECK(admitted.retry_after == 0s);
    const auto refused = limiter.admit("a", t(0));
    CHECK(refused.left == 0);
    CHECK(refused.retry_after == 2s);
    CHECK(refused.reset_after == 10s);
}

TEST_CASE("a store that is scripted away knows no wait", "[scripted_store]")
{
    scripted_store      counters({{verdict::refused, basis::store_unavailable}});
    const weir::limiter limiter("ip", weir::sliding_window{.limit = 5, .window = 1s}, counters);
    CHECK(limiter.admit("a", t(0)).retry_after == std::nullopt);
}

TEST_CASE("no script admits what never fits", "[scripted_store]")
{
    scripted_store      counters;
    const weir::limiter none("none", weir::fixed_window{.limit = 0}, counters);
    const weir::limiter few("few", weir::gcra{.limit = 3}, counters);
    CHECK(!none.admit("a", t(0)));
    CHECK(!few.admit("a", {.cost = 4}, t(0)));
    CHECK(few.admit("a", {.cost = 3}, t(0)));
}

TEST_CASE("what was asked is recorded in order", "[scripted_store]")
{
    weir::testing::manual_clock clock(t(7));
    scripted_store              counters({}, clock.function());
    const weir::limiter         limiter("ip", weir::fixed_window{.limit = 5}, counters);
    const auto                  made = limiter.admit("a", {.cost = 2});
    limiter.charge("a", {.cost = 4});
    limiter.give_back("a", made);
    const auto asked = counters.asked();
    REQUIRE(asked.size() == 3);
    CHECK(asked[0].who == limiter.digest("a"));
    CHECK(asked[0].verb == weir::verb::spend);
    CHECK(asked[0].cost == 2);
    CHECK(asked[0].at == t(7));
    CHECK(asked[1].verb == weir::verb::charge);
    CHECK(asked[1].cost == 4);
    CHECK(asked[2].verb == weir::verb::give_back);
}

TEST_CASE("a script that is rewritten begins again", "[scripted_store]")
{
    scripted_store      counters({{verdict::refused}});
    const weir::limiter limiter("ip", weir::fixed_window{.limit = 5}, counters);
    CHECK(!limiter.admit("a", t(0)));
    counters.rewrite({{verdict::admitted}, {verdict::refused}});
    CHECK(limiter.admit("a", t(0)));
    CHECK(!limiter.admit("a", t(0)));
    CHECK(counters.asked().size() == 3);
}
