// SPDX-License-Identifier: BSL-1.0

// Sets of which a store with a clock of its own has a part, or all.

#include "weir/admit_all.hpp"

#include "catch.hpp"
#include "reference/one_client.hpp"
#include "reference/own_clock_store.hpp"
#include "reference/random.hpp"

#include "weir/limiter.hpp"
#include "weir/policy/fixed_window.hpp"
#include "weir/policy/gcra.hpp"
#include "weir/policy/sliding_window.hpp"
#include "weir/store/memory.hpp"
#include "weir/testing/manual_clock.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using reference::own_clock_store;
using reference::random_number;
using reference::t;

namespace {

struct tally {
    std::atomic<int>* told;
    void              decided(const weir::decision&) noexcept { ++*told; }
};

/// One limit of each kind for one client.
template <class Store>
struct three_limits {
    explicit three_limits(Store& counters)
        : ip("ip", {.limit = 6, .window = 1s}, counters),
          net("net", {.limit = 9, .window = 3s}, counters),
          user("user", {.limit = 5, .window = 2s}, counters)
    {
    }
    weir::pending ask(unsigned which, std::uint64_t cost) const
    {
        return which == 0 ? ip("a", {cost}) : which == 1 ? net("a", {cost}) : user("a", {cost});
    }
    template <class... At>
    std::array<weir::decision, 3> looks(At... at) const
    {
        return {ip.peek("a", {}, at...), net.peek("a", {}, at...), user.peek("a", {}, at...)};
    }

    weir::limiter<weir::fixed_window, Store>   ip;
    weir::limiter<weir::sliding_window, Store> net;
    weir::limiter<weir::gcra, Store>           user;
};

}  // namespace

TEST_CASE("a set on one store that takes sets is handed to it whole", "[admit_all]")
{
    own_clock_store     counters(t(45'000));
    const weir::limiter ip("ip", weir::fixed_window{.limit = 5, .window = 1min}, counters);
    const weir::limiter user("user", weir::gcra{.limit = 3, .window = 1min}, counters);
    const auto          made = weir::admit_all({ip("a"), user("b", {.cost = 2})});
    CHECK(made);
    CHECK(made.limiter == "user");
    CHECK(made.left == 1);
    CHECK(made.at == t(45'000));
    CHECK(made.refused_by().empty());
    CHECK(counters.sets() == 1);
    CHECK(counters.asked() == 0);
    CHECK(ip.peek("a").left == 4);
    CHECK(user.peek("b").left == 1);
}

TEST_CASE("an instant means nothing to a set on a store's own clock", "[admit_all]")
{
    own_clock_store     counters(t(45'000));
    const weir::limiter ip("ip", weir::fixed_window{.limit = 2, .window = 1min}, counters);
    CHECK(weir::admit_all({ip("a"), ip("b")}, t(90'000)).at == t(45'000));
    CHECK(weir::admit_all({ip("a")}, t(200'000)).at == t(45'000));
    CHECK(!weir::admit_all({ip("a"), ip("b")}, t(90'000)));
}

TEST_CASE("a refused set on one store spends nothing and names all who refused", "[admit_all]")
{
    own_clock_store     counters(t(0));
    const weir::limiter ip("ip", weir::fixed_window{.limit = 5, .window = 1min}, counters);
    const weir::limiter net("net", weir::sliding_window{.limit = 4, .window = 1h}, counters);
    const weir::limiter user("user", weir::gcra{.limit = 2, .window = 1min}, counters);
    CHECK(ip.admit("a", {.cost = 5}));
    CHECK(user.admit("c", {.cost = 2}));
    counters.advance(10s);
    for (int i = 0; i < 10; ++i) {
        const auto refused = weir::admit_all({ip("a"), net("b", {.cost = 2}), user("c")});
        CHECK(!refused);
        REQUIRE(refused.refused_by().size() == 2);
        CHECK(refused.refused_by()[0] == "ip");
        CHECK(refused.refused_by()[1] == "user");
        CHECK(refused.limiter == "ip");
        CHECK(refused.retry_after == 50s);
    }
    CHECK(counters.sets() == 10);
    CHECK(net.peek("b").left == 4);
    CHECK(user.peek("c").retry_after == 20s);
}

TEST_CASE("one key twice in a set on one store needs room for both, and else keeps neither",
          "[admit_all]")
{
    own_clock_store     counters(t(0));
    const weir::limiter ip("ip", weir::fixed_window{.limit = 3, .window = 1min}, counters);
    CHECK(weir::admit_all({ip("a"), ip("a")}));
    const auto refused = weir::admit_all({ip("a"), ip("a")});
    CHECK(!refused);
    CHECK(refused.refused_by().size() == 1);
    CHECK(refused.retry_after == 1min);
    CHECK(ip.peek("a").left == 1);
}

TEST_CASE("a set of one is an ordinary ask", "[admit_all]")
{
    own_clock_store     counters(t(0));
    const weir::limiter ip("ip", weir::fixed_window{.limit = 1, .window = 1min}, counters);
    CHECK(weir::admit_all({ip("a")}));
    const auto refused = weir::admit_all({ip("a")});
    CHECK(!refused);
    CHECK(refused.refused_by().size() == 1);
    CHECK(counters.sets() == 0);
    CHECK(counters.asked(weir::verb::spend) == 2);
}

TEST_CASE("a set with an ask that can never fit is refused, and the store spends nothing",
          "[admit_all]")
{
    own_clock_store     counters(t(0));
    const weir::limiter ip("ip", weir::fixed_window{.limit = 2, .window = 1min}, counters);
    const weir::limiter none("none", weir::gcra{.limit = 0}, counters);
    const weir::limiter full("full", weir::gcra{.limit = 1, .window = 1min}, counters);
    CHECK(full.admit("a"));
    for (const std::uint64_t cost : {0u, 1u}) {
        const auto refused = weir::admit_all({ip("a"), none("a", {cost}), full("a")});
        CHECK(!refused);
        CHECK(refused.retry_after == std::nullopt);
        CHECK(refused.limiter == "none");
        REQUIRE(refused.refused_by().size() == 2);
        CHECK(refused.refused_by()[0] == "none");
        CHECK(refused.refused_by()[1] == "full");
    }
    const auto dear = weir::admit_all({ip("a", {.cost = 3}), ip("b")});
    CHECK(!dear);
    CHECK(dear.refused_by().size() == 1);
    CHECK(counters.sets() == 0);
    CHECK(counters.asked(weir::verb::spend) == 1);
    CHECK(ip.peek("a").left == 2);
}

TEST_CASE("a set of memory and a store on its own clock goes by both clocks, all or nothing",
          "[admit_all]")
{
    own_clock_store             shared(t(45'000));
    weir::testing::manual_clock clock(t(100'000));
    weir::memory_store          here({.clock = clock.function()});
    const weir::limiter         ours("ours", weir::fixed_window{.limit = 2, .window = 1min}, here);
    const weir::limiter theirs("theirs", weir::fixed_window{.limit = 2, .window = 1min}, shared);

    const auto made = weir::admit_all({theirs("a"), ours("a")});
    CHECK(made);
    CHECK(shared.sets() == 0);
    CHECK(ours.peek("a").reset_after == 20s);
    CHECK(theirs.peek("a").reset_after == 15s);

    CHECK(theirs.admit("a"));
    const auto refused = weir::admit_all({theirs("a"), ours("a")}, t(119'000));
    CHECK(!refused);
    CHECK(refused.refused_by().size() == 1);
    CHECK(refused.limiter == "theirs");
    CHECK(refused.retry_after == 15s);
    CHECK(ours.peek("a").left == 1);

    shared.advance(15s);
    CHECK(ours.admit("a"));
    CHECK(weir::admit_all({theirs("a"), ours("a")}).limiter == "ours");
    CHECK(theirs.peek("a").left == 2);
    CHECK(weir::admit_all({theirs("a"), ours("a")}, t(120'000)));
}

TEST_CASE("what is put back in a mixed set is put back by both", "[admit_all]")
{
    own_clock_store     shared(t(0));
    weir::memory_store  here;
    const weir::limiter ours("ours", weir::fixed_window{.limit = 3, .window = 1min}, here);
    const weir::limiter theirs("theirs", weir::fixed_window{.limit = 3, .window = 1min}, shared);
    // Each fits alone, so that the second one of a key refuses only after all others have spent.
    CHECK(!weir::admit_all({ours("a", {2}), theirs("b", {2}), theirs("b", {2})}, t(0)));
    CHECK(!weir::admit_all({theirs("b", {2}), ours("a", {2}), ours("a", {2})}, t(0)));
    CHECK(ours.peek("a", {}, t(0)).left == 3);
    CHECK(theirs.peek("b").left == 3);
}

TEST_CASE("two stores on clocks of their own are each asked", "[admit_all]")
{
    own_clock_store     first(t(0)), second(t(0));
    const weir::limiter a("a", weir::fixed_window{.limit = 1, .window = 1min}, first);
    const weir::limiter b("b", weir::fixed_window{.limit = 1, .window = 1min}, second);
    CHECK(weir::admit_all({a("x"), b("x")}));
    CHECK(!weir::admit_all({a("x"), b("x")}));
    CHECK(first.sets() + second.sets() == 0);
}

TEST_CASE("each limiter of a set on one store is told of once, or not at all", "[admit_all]")
{
    std::atomic<int>    ip_told{0}, user_told{0};
    own_clock_store     counters(t(0));
    const weir::limiter ip("ip", weir::fixed_window{.limit = 9, .window = 1min}, counters, {},
                           tally{&ip_told});
    const weir::limiter user("user", weir::fixed_window{.limit = 1, .window = 1min}, counters, {},
                             tally{&user_told});
    CHECK(weir::admit_all({ip("a"), user("b")}));
    CHECK(ip_told == 1);
    CHECK(user_told == 1);
    CHECK(!weir::admit_all({ip("a"), user("b")}));
    CHECK(ip_told == 1);  // it fitted, and was not spent
    CHECK(user_told == 2);
}

TEST_CASE("a random set on one store is told what memory tells the same set", "[admit_all]")
{
    own_clock_store                        shared(t(0));
    weir::memory_store                     here;
    const three_limits<own_clock_store>    theirs(shared);
    const three_limits<weir::memory_store> ours(here);
    reference::generator                   random(70'000'000);
    auto                                   at       = t(0);
    int                                    admitted = 0, refused = 0;
    for (int i = 0; i < 10'000; ++i) {
        if (reference::chance(random, 60)) {
            const weir::duration by(random_number<std::int64_t>(random, 0, 700'000'000));
            at += by, shared.advance(by);
        }
        std::vector<weir::pending> set, same;
        std::array<int, 3>         asks{};
        for (auto left = random_number(random, 1, 5); left > 0; --left) {
            const auto which = random_number(random, 0u, 2u);
            const auto cost  = random_number<std::uint64_t>(random, 1, 3);
            set.push_back(theirs.ask(which, cost));
            same.push_back(ours.ask(which, cost));
            ++asks[which];
        }
        const auto told = weir::admit_all(set);
        const auto due  = weir::admit_all(same, at);
        REQUIRE(bool(told) == bool(due));
        REQUIRE(told.refused_by().empty() == bool(told));
        if (asks[0] < 2 && asks[1] < 2 && asks[2] < 2) {
            REQUIRE(static_cast<const weir::decision&>(told) ==
                    static_cast<const weir::decision&>(due));
            REQUIRE(told.refused_by().size() == due.refused_by().size());
        }
        REQUIRE(theirs.looks() == ours.looks(at));
        ++(told ? admitted : refused);
    }
    CHECK(admitted > 1'000);
    CHECK(refused > 1'000);
}

TEST_CASE("sets of many threads on one store take exactly what they are told", "[admit_all]")
{
    own_clock_store          counters(t(0));
    const weir::limiter      a("a", weir::fixed_window{.limit = 300, .window = 1h}, counters);
    const weir::limiter      b("b", weir::sliding_window{.limit = 200, .window = 1h}, counters);
    std::atomic<int>         both{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            for (int n = 0; n < 100; ++n) both += bool(weir::admit_all({a("x"), b("x")}));
        });
    for (auto& one : threads) one.join();
    CHECK(both == 200);
    CHECK(a.peek("x").left == 100);
}
