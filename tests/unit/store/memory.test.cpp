// SPDX-License-Identifier: BSL-1.0

#include "weir/store/memory.hpp"

#include "catch.hpp"
#include "reference/one_client.hpp"

#include "weir/limiter.hpp"
#include "weir/testing/store_suite.hpp"

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

using namespace std::chrono_literals;
using reference::t;

namespace {

template <class Policy>
void holds_every_claim()
{
    weir::memory_store counters;
    weir::testing::store_suite<Policy>(counters, [](bool held, std::string_view claim) {
        INFO(claim);
        CHECK(held);
    });
}

}  // namespace

static_assert(weir::store_of<weir::memory_store, weir::fixed_window>);
static_assert(weir::store_of<weir::memory_store, weir::sliding_window>);
static_assert(weir::store_of<weir::memory_store, weir::gcra>);

TEST_CASE("the memory store shows what every store must, under fixed_window", "[memory]")
{
    holds_every_claim<weir::fixed_window>();
}

TEST_CASE("the memory store shows what every store must, under sliding_window", "[memory]")
{
    holds_every_claim<weir::sliding_window>();
}

TEST_CASE("the memory store shows what every store must, under gcra", "[memory]")
{
    holds_every_claim<weir::gcra>();
}

TEST_CASE("B15: a counter is free to be dropped from its TAT on", "[memory]")
{
    constexpr weir::gcra limit{.limit = 1, .window = 1s};
    weir::memory_store   counters;
    const weir::limiter  limiter("ip", limit, counters);
    CHECK(limiter.admit("foo", t(0)));
    CHECK(limiter.admit("bar", t(200)));
    CHECK(limiter.admit("baz", t(800)));
    const auto live = [&](std::int64_t ms) {
        return counters.enrol("ip", limit)->live(limit, t(ms));
    };
    CHECK(live(999) == 3);
    CHECK(live(1'000) == 2);
    CHECK(live(1'199) == 2);
    CHECK(live(1'200) == 1);
    CHECK(live(1'800) == 0);
}

TEST_CASE("O43: five times as many new keys as the table holds do not free an exhausted one",
          "[memory]")
{
    for (const auto overflow : {weir::overflow::sketch, weir::overflow::refuse}) {
        weir::memory_store  counters({.max_keys = 1'000, .overflow = overflow});
        const weir::limiter limiter("ip", weir::fixed_window{.limit = 10, .window = 1min},
                                    counters);
        int                 admitted = 0;
        for (int i = 0; i < 20; ++i) admitted += bool(limiter.admit("victim", t(0)));
        for (int i = 0; i < 5'000; ++i) {
            (void)limiter.admit(std::to_string(i), t(i));
            if (i % 100 == 0) admitted += bool(limiter.admit("victim", t(i)));
        }
        CHECK(admitted == 10);
        CHECK(!limiter.admit("victim", t(59'999)));
        CHECK(limiter.admit("victim", t(60'000)));
    }
}

TEST_CASE("a full table without a sketch says that it has no room and admits nobody new",
          "[memory]")
{
    weir::memory_store  counters({.max_keys = 10, .overflow = weir::overflow::refuse});
    const weir::limiter limiter("ip", weir::fixed_window{.limit = 10, .window = 1min}, counters);
    std::vector<std::string> admitted;
    int                      unavailable = 0;
    for (int i = 0; i < 1'000; ++i) {
        const auto told = limiter.admit(std::to_string(i), t(0));
        if (told) admitted.push_back(std::to_string(i));
        else unavailable += told.basis == weir::basis::store_unavailable;
    }
    CHECK(admitted.size() + static_cast<std::size_t>(unavailable) == 1'000);
    CHECK(admitted.size() >= 10);
    CHECK(admitted.size() < 100);
    for (const auto& who : admitted) CHECK(limiter.peek(who, {}, t(0)).left == 9);
    CHECK(limiter.admit("late", t(60'000)));
}

TEST_CASE("a key that overflowed starts from its estimate when it gets a slot", "[memory]")
{
    weir::memory_store       counters({.max_keys = 10});
    const weir::limiter      limiter("ip", weir::gcra{.limit = 10, .window = 1min}, counters);
    std::vector<std::string> estimated;
    for (int i = 0; i < 200; ++i) (void)limiter.admit("filler " + std::to_string(i), t(0));
    for (int i = 0; i < 100; ++i) {
        const auto who = "late " + std::to_string(i);
        if (limiter.admit(who, {.cost = 9}, t(1)).basis == weir::basis::estimated)
            estimated.push_back(who);
    }
    REQUIRE(!estimated.empty());
    // The fillers' slots come free at 6 s; the late keys are used up until 54 s.
    for (const auto& who : estimated) {
        CHECK(!limiter.admit(who, {.cost = 3}, t(6'100)));
        CHECK(limiter.peek(who, {}, t(6'100)).left <= 2);
    }
}

TEST_CASE("each limiter has room of its own, and bytes() tells the sum", "[memory]")
{
    weir::memory_store  counters({.max_keys = 100'000});
    const auto          none = counters.bytes();
    const weir::limiter first("first", weir::fixed_window{.limit = 1, .window = 1s}, counters);
    const auto          one = counters.bytes();
    const weir::limiter again("first", weir::fixed_window{.limit = 2, .window = 1s}, counters);
    CHECK(counters.bytes() == one);
    const weir::limiter second("second", weir::gcra{.limit = 1, .window = 1s}, counters);
    CHECK(one - none > 100'000 * 20);
    CHECK(one - none < 100'000 * 45);
    CHECK(counters.bytes() > one);
}

TEST_CASE("a store of no keys is refused", "[memory]")
{
    CHECK_THROWS_AS(weir::memory_store({.max_keys = 0}), std::invalid_argument);
    CHECK_NOTHROW(weir::memory_store({.max_keys = 1}));
}

TEST_CASE("a counter of long ago is over, however the layout numbers its windows", "[memory]")
{
    const auto fresh_after = [](weir::duration window, weir::duration idle) {
        weir::memory_store  counters;
        const weir::limiter limiter("ip", weir::fixed_window{.limit = 1, .window = window},
                                    counters);
        (void)limiter.admit("client", t(0));
        return bool(limiter.admit("client", t(0) + idle));
    };
    for (const auto window :
         {weir::duration(100ms), weir::duration(1s), weir::duration(1h), weir::duration(24h)})
        for (const auto idle : {window, 2 * window, weir::duration(24h), weir::duration(24h) * 365,
                                weir::duration(24h) * 700})
            CHECK(fresh_after(window, idle));
}

TEST_CASE("seeds make the keys: equal ones agree and others do not", "[memory]")
{
    weir::memory_store one({.seed = weir::hash_seed{1, 2}}), same({.seed = weir::hash_seed{1, 2}}),
        other({.seed = weir::hash_seed{1, 3}});
    constexpr weir::fixed_window limit{.limit = 1};
    const auto                   key = [&](weir::memory_store& store) {
        return weir::limiter("ip", limit, store).digest("client");
    };
    CHECK(key(one) == key(same));
    CHECK(key(one) != key(other));
}
