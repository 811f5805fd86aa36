// SPDX-License-Identifier: BSL-1.0

#include "weir/admit_all.hpp"

#include "catch.hpp"
#include "reference/one_client.hpp"

#include "weir/limiter.hpp"
#include "weir/store/memory.hpp"
#include "weir/testing/manual_clock.hpp"
#include "weir/testing/scripted_store.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

using namespace std::chrono_literals;
using reference::t;

TEST_CASE("O33: a rule that would have passed keeps no charge when another refuses", "[admit_all]")
{
    weir::memory_store  counters;
    const weir::limiter quick("quick", weir::fixed_window{.limit = 10, .window = 60s}, counters);
    const weir::limiter slow("slow", weir::fixed_window{.limit = 30, .window = 1800s}, counters);
    int                 admitted = 0;
    for (int i = 0; i < 31; ++i) {
        const auto at = t(i < 20 ? i * 1'000 : 60'000 + i * 1'000);
        admitted += bool(weir::admit_all({quick("client"), slow("client")}, at));
    }
    CHECK(admitted == 20);
    CHECK(slow.peek("client", {}, t(119'000)).left == 10);
}

TEST_CASE("a set tells the tightest figures and names all who refused", "[admit_all]")
{
    weir::memory_store  counters;
    const weir::limiter ip("ip", weir::fixed_window{.limit = 5, .window = 1min}, counters);
    const weir::limiter net("net", weir::fixed_window{.limit = 3, .window = 1h}, counters);
    const weir::limiter user("user", weir::fixed_window{.limit = 9, .window = 1s}, counters);

    const auto made = weir::admit_all({ip("a"), net("b"), user("c", {.cost = 3})}, t(0));
    CHECK(made);
    CHECK(made.limiter == "net");
    CHECK(made.left == 2);
    CHECK(made.refused_by().empty());
    CHECK(user.peek("c", {}, t(0)).left == 6);

    const auto refused =
        weir::admit_all({ip("a", {.cost = 5}), net("b"), user("c", {.cost = 9})}, t(0));
    CHECK(!refused);
    CHECK(refused.limiter == "ip");
    REQUIRE(refused.refused_by().size() == 2);
    CHECK(refused.refused_by()[0] == "ip");
    CHECK(refused.refused_by()[1] == "user");
    CHECK(net.peek("b", {}, t(0)).left == 2);
}

TEST_CASE("a refused set changes no count of any of its limiters", "[admit_all]")
{
    weir::memory_store  counters;
    const weir::limiter fixed("fixed", weir::fixed_window{.limit = 5, .window = 1min}, counters);
    const weir::limiter sliding("sliding", weir::sliding_window{.limit = 5, .window = 1min},
                                counters);
    const weir::limiter bucket("bucket", weir::gcra{.limit = 5, .window = 1min}, counters);
    const weir::limiter full("full", weir::gcra{.limit = 1, .window = 1min}, counters);
    CHECK(full.admit("client", t(0)));
    for (int i = 0; i < 100; ++i)
        REQUIRE(!weir::admit_all(
            {fixed("client"), sliding("client"), bucket("client"), full("client")}, t(i)));
    for (const auto& left :
         {fixed.peek("client", {}, t(100)).left, sliding.peek("client", {}, t(100)).left,
          bucket.peek("client", {}, t(100)).left})
        CHECK(left == 5);
}

TEST_CASE("one key twice in a set needs room for both and else keeps neither", "[admit_all]")
{
    weir::memory_store  counters;
    const weir::limiter ip("ip", weir::fixed_window{.limit = 3, .window = 1min}, counters);
    CHECK(weir::admit_all({ip("a"), ip("a")}, t(0)));
    CHECK(!weir::admit_all({ip("a"), ip("a")}, t(0)));
    CHECK(ip.peek("a", {}, t(0)).left == 1);
}

TEST_CASE("a set that was computed is decided like one that was written down", "[admit_all]")
{
    weir::memory_store         counters;
    const weir::limiter        ip("ip", weir::fixed_window{.limit = 2, .window = 1min}, counters);
    std::vector<weir::pending> set;
    for (const auto* who : {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"})
        set.push_back(ip(who));
    CHECK(weir::admit_all(set, t(0)));
    CHECK(weir::admit_all(set, t(0)));
    const auto refused = weir::admit_all(set, t(0));
    CHECK(!refused);
    CHECK(refused.refused_by().size() == 8);
    static_assert(!std::is_copy_constructible_v<weir::pending>);
}

TEST_CASE("the basis of a set is the weakest of its parts", "[admit_all]")
{
    weir::testing::scripted_store away({{weir::verdict::refused, weir::basis::store_unavailable}});
    weir::memory_store            counters;
    const weir::limiter here("here", weir::fixed_window{.limit = 1, .window = 1min}, counters);
    const weir::limiter there("there", weir::fixed_window{.limit = 1, .window = 1min}, away);
    const auto          made = weir::admit_all({here("a"), there("a")}, t(0));
    CHECK(!made);
    CHECK(made.basis == weir::basis::store_unavailable);
    CHECK(here.admit("a", t(0)));
}

TEST_CASE(
    "overlapping sets of many threads never take more than a limit, and undo what they do not keep",
    "[admit_all]")
{
    weir::memory_store       counters;
    const weir::limiter      a("a", weir::fixed_window{.limit = 300, .window = 1h}, counters);
    const weir::limiter      b("b", weir::sliding_window{.limit = 200, .window = 1h}, counters);
    const weir::limiter      c("c", weir::gcra{.limit = 100, .window = 100h}, counters);
    std::atomic<int>         ab{0}, bc{0}, ca{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&, i] {
            for (int n = 0; n < 200; ++n) {
                if (i % 3 == 0) ab += bool(weir::admit_all({a("x"), b("x")}, t(0)));
                if (i % 3 == 1) bc += bool(weir::admit_all({c("x"), b("x")}, t(0)));
                if (i % 3 == 2) ca += bool(weir::admit_all({c("x"), a("x")}, t(0)));
            }
        });
    for (auto& one : threads) one.join();
    CHECK(a.peek("x", {}, t(0)).left == static_cast<std::uint64_t>(300 - ab - ca));
    CHECK(b.peek("x", {}, t(0)).left == static_cast<std::uint64_t>(200 - ab - bc));
    CHECK(c.peek("x", {}, t(0)).left == static_cast<std::uint64_t>(100 - bc - ca));
}

TEST_CASE("a set is judged by the clock of the limiters' store", "[admit_all]")
{
    weir::testing::manual_clock clock;
    weir::memory_store          counters({.clock = clock.function()});
    const weir::limiter         ip("ip", weir::fixed_window{.limit = 1, .window = 1min}, counters);

    const auto first = clock.now();
    CHECK(weir::admit_all({ip("a")}).at == first);
    CHECK_FALSE(weir::admit_all({ip("a")}));
    clock.advance(1min);
    CHECK(weir::admit_all({ip("a")}));
}

TEST_CASE("an empty set is admitted", "[admit_all]")
{
    CHECK(weir::admit_all(std::span<const weir::pending>()));
}
