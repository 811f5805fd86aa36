// SPDX-License-Identifier: BSL-1.0

#include "weir/limiter.hpp"

#include "catch.hpp"
#include "reference/one_client.hpp"

#include "weir/store/memory.hpp"
#include "weir/testing/manual_clock.hpp"
#include "weir/testing/scripted_store.hpp"
#include "weir/weir.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <latch>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using reference::one_client;
using reference::t;

namespace {

/// Whether `spending{.cost = n}` compiles for a number of that type: no, where that might be
/// negative.
template <class Number>
concept can_be_a_cost = requires(Number number)
{
    weir::spending{number};
};

template <class Number>
concept can_be_a_limit = requires(Number number)
{
    weir::fixed_window{number};
};

/// What `threads` threads are granted together, each asking once at the same moment.
template <class Limiter>
int granted_at_once(const Limiter& limiter, int threads, weir::instant at)
{
    std::atomic<int>         granted{0};
    std::latch               ready(threads);
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i)
        all.emplace_back([&] {
            ready.arrive_and_wait();
            granted += bool(limiter.admit("client", at));
        });
    for (auto& one : all) one.join();
    return granted;
}

struct tally {
    std::atomic<int>* admitted;
    std::atomic<int>* refused;
    void decided(const weir::decision& made) noexcept { ++*(made ? admitted : refused); }
};

}  // namespace

TEST_CASE("a decision tells the limiter, the cost, the limit, the window and the instant",
          "[limiter]")
{
    weir::memory_store  counters;
    const weir::limiter limiter("site.ip", weir::fixed_window{.limit = 10, .window = 1min},
                                counters);
    const auto          made = limiter.admit("client", {.cost = 4}, t(1'000));
    CHECK(made);
    CHECK(made.basis == weir::basis::counted);
    CHECK(made.limiter == "site.ip");
    CHECK(made.cost == 4);
    CHECK(made.limit == 10);
    CHECK(made.left == 6);
    CHECK(made.window == 1min);
    CHECK(made.retry_after == 0s);
    CHECK(made.reset_after == 59s);
    CHECK(made.at == t(1'000));
}

TEST_CASE("the limit in a decision of gcra is its burst", "[limiter]")
{
    one_client client(weir::gcra{.limit = 60, .window = 1min, .burst = 5});
    CHECK(client.admit(0).limit == 5);
}

TEST_CASE("O21: a cost or a limit that may be negative does not compile", "[limiter]")
{
    static_assert(!can_be_a_cost<int> && !can_be_a_cost<std::int64_t>);
    static_assert(can_be_a_cost<std::uint64_t> && can_be_a_cost<unsigned>);
    static_assert(!can_be_a_limit<int> && can_be_a_limit<unsigned>);
    SUCCEED("checked by the compiler");
}

TEST_CASE("O21: a cost of 0 looks whether one unit fits and takes nothing", "[limiter]")
{
    one_client client(weir::sliding_window{.limit = 1, .window = 1s});
    for (int i = 0; i < 3; ++i) CHECK(client.admit(0, 0));
    CHECK(client.admit(0));
    const auto looked = client.admit(0, 0);
    CHECK(!looked);
    CHECK(looked.cost == 0);
    CHECK(looked.retry_after == client.admit(0).retry_after);
}

TEST_CASE("O21: a cost of 2^64-1 is refused under every policy and takes nothing", "[limiter]")
{
    const auto refuses = [](const auto& limit) {
        one_client client(limit);
        const auto told = client.admit(0, ~std::uint64_t{0});
        return !told && !told.retry_after && client.admit(0).left == 9;
    };
    CHECK(refuses(weir::fixed_window{.limit = 10}));
    CHECK(refuses(weir::sliding_window{.limit = 10}));
    CHECK(refuses(weir::gcra{.limit = 10}));
}

TEST_CASE(
    "O22: a limit of 0 refuses the first request, knows no wait, and leaves no counter behind",
    "[limiter]")
{
    const auto check = [](const auto& limit) {
        weir::memory_store  counters;
        const weir::limiter limiter("none", limit, counters);
        const auto          told = limiter.admit("client", t(0));
        CHECK(!told);
        CHECK(told.retry_after == std::nullopt);
        CHECK(told.left == 0);
        CHECK(told.reset_after == 0s);
        CHECK(counters.enrol("none", limit)->live(limit, t(0)) == 0);
    };
    check(weir::fixed_window{.limit = 0});
    check(weir::sliding_window{.limit = 0});
    check(weir::gcra{.limit = 0});
}

TEST_CASE("B7: a store that fails every write is told as away, and neither yes nor no of a counter",
          "[limiter]")
{
    weir::testing::scripted_store counters(
        {{weir::verdict::refused, weir::basis::store_unavailable}});
    const weir::limiter limiter("ip", weir::gcra{.limit = 1, .burst = 5}, counters);
    const auto          told = limiter.admit("client", t(0));
    CHECK(told.basis == weir::basis::store_unavailable);
    CHECK(!told);
    CHECK(told.retry_after == std::nullopt);
}

TEST_CASE("B30: what a store grants is a count without a sign or a fraction", "[limiter]")
{
    static_assert(std::is_same_v<decltype(weir::reply<weir::gcra>::granted), std::uint64_t>);
    weir::testing::scripted_store counters;
    const weir::limiter           limiter("ip", weir::gcra{.limit = 1}, counters);
    CHECK(limiter.admit("client", t(0)));
}

TEST_CASE("B11: of fifteen threads at once exactly five are let through", "[limiter]")
{
    for (int round = 0; round < 50; ++round) {
        one_client client(weir::gcra{.limit = 1, .window = 1s, .burst = 5});
        REQUIRE(granted_at_once(client.limiter, 15, t(0)) == 5);
    }
}

TEST_CASE(
    "B16: twenty threads on twenty a second are all let through, and a unit comes back each 50 ms",
    "[limiter]")
{
    one_client client(weir::gcra{.limit = 20, .window = 1s});
    CHECK(granted_at_once(client.limiter, 20, t(0)) == 20);
    CHECK(!client.admit(0));
    CHECK(client.admitted(20, 998) == 19);
    CHECK(client.admit(1'000));
}

TEST_CASE("O40: a limiter made again with the same limit meets its counters, a thousand times over",
          "[limiter]")
{
    constexpr weir::fixed_window limit{.limit = 10, .window = 1min};
    weir::memory_store           counters;
    int                          admitted = 0;
    for (int reload = 0; reload < 1'000; ++reload) {
        const weir::limiter limiter("ip", limit, counters);
        for (int i = 0; i < 3; ++i) admitted += bool(limiter.admit("client", t(reload)));
    }
    CHECK(admitted == 10);
    const weir::limiter raised("ip", weir::fixed_window{.limit = 20, .window = 1min}, counters);
    for (int i = 0; i < 30; ++i) admitted += bool(raised.admit("client", t(2'000)));
    CHECK(admitted == 20);
}

TEST_CASE("O40: reloads while others ask let nobody through twice", "[limiter]")
{
    constexpr weir::sliding_window limit{.limit = 10, .window = 1min};
    weir::memory_store             counters;
    std::atomic<int>               admitted{0};
    std::vector<std::thread>       threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            for (int reload = 0; reload < 250; ++reload) {
                const weir::limiter limiter("ip", limit, counters);
                admitted += bool(limiter.admit("client", t(0)));
            }
        });
    for (auto& one : threads) one.join();
    CHECK(admitted == 10);
}

TEST_CASE("set_limit takes another limit and leaves what it cannot take as it was", "[limiter]")
{
    weir::memory_store counters;
    weir::limiter      limiter("ip", weir::sliding_window{.limit = 2, .window = 1s}, counters);
    CHECK(limiter.admit("client", {.cost = 2}, t(0)));
    CHECK(limiter.set_limit({.limit = 3, .window = 1s}));
    CHECK(limiter.admit("client", t(0)));
    CHECK(!limiter.set_limit({.limit = 9, .window = 2s}));
    CHECK(!limiter.set_limit({.limit = std::uint64_t{1} << 33, .window = 1s}));
    CHECK(!limiter.set_limit({.limit = 9, .window = 0s}));
    CHECK(limiter.limit() == weir::sliding_window{.limit = 3, .window = 1s});
    CHECK(!limiter.admit("client", t(0)));
}

TEST_CASE("gcra keeps its instant when the limit changes and refills at the new rate", "[limiter]")
{
    weir::memory_store counters;
    weir::limiter      limiter("ip", weir::gcra{.limit = 10, .window = 10s}, counters);
    CHECK(limiter.admit("client", {.cost = 10}, t(0)));
    CHECK(limiter.set_limit({.limit = 20, .window = 10s}));
    CHECK(limiter.admit("client", t(0)).retry_after == 500ms);
}

TEST_CASE("wrong numbers throw where the limiter is made, with its name and what is allowed",
          "[limiter]")
{
    weir::memory_store counters;
    const auto         message = [&](const auto& limit) {
        try {
            weir::limiter limiter("login", limit, counters);
        } catch (const std::invalid_argument& wrong) {
            return std::string(wrong.what());
        }
        return std::string();
    };
    CHECK(message(weir::fixed_window{.limit = 1, .window = 0s}).find("\"login\"") !=
          std::string::npos);
    CHECK(message(weir::sliding_window{.limit = std::uint64_t{1} << 33, .window = 1ms})
              .find("8589934591") != std::string::npos);
    CHECK(message(weir::sliding_window{.limit = (std::uint64_t{1} << 33) - 1, .window = 1ms})
              .empty());
    CHECK(message(weir::gcra{.limit = 1, .window = -1s}).find("window") != std::string::npos);
}

TEST_CASE("a key made beforehand counts as its subject", "[limiter]")
{
    one_client client(weir::fixed_window{.limit = 2, .window = 1min});
    const auto key = client.limiter.digest("client");
    CHECK(client.admit(0));
    CHECK(client.limiter.admit(key, t(0)));
    CHECK(!client.admit(0));
}

TEST_CASE("admit_many decides as admit does for each in turn", "[limiter]")
{
    weir::memory_store  counters;
    const weir::limiter many("many", weir::fixed_window{.limit = 3, .window = 1min}, counters);
    const weir::limiter single("single", weir::fixed_window{.limit = 3, .window = 1min}, counters);
    std::vector<std::string>   names;
    std::vector<weir::subject> subjects;
    for (int i = 0; i < 50; ++i) names.push_back(std::to_string(i * i % 11));
    for (const auto& name : names) subjects.emplace_back(name);
    std::vector<weir::decision> made(subjects.size());
    many.admit_many(subjects, made, t(0));
    for (std::size_t i = 0; i < subjects.size(); ++i) {
        auto expected    = single.admit(subjects[i], t(0));
        expected.limiter = "many";
        CHECK(made[i] == expected);
    }
}

TEST_CASE("nothing is given back for a refusal or an estimate", "[limiter]")
{
    weir::testing::scripted_store counters({{weir::verdict::refused},
                                            {weir::verdict::admitted, weir::basis::estimated},
                                            {weir::verdict::admitted}});
    const weir::limiter           limiter("ip", weir::fixed_window{.limit = 5}, counters);
    limiter.give_back("client", limiter.admit("client", t(0)), t(0));
    limiter.give_back("client", limiter.admit("client", t(0)), t(0));
    CHECK(counters.asked().size() == 2);
    limiter.give_back("client", limiter.admit("client", t(0)), t(0));
    CHECK(counters.asked().back().verb == weir::verb::give_back);
}

TEST_CASE(
    "nothing is given back of what the outage rule admitted, since no counter was charged for it",
    "[limiter]")
{
    for (const auto basis : {weir::basis::local, weir::basis::store_unavailable}) {
        weir::testing::scripted_store counters({{weir::verdict::admitted, basis}});
        const weir::limiter limiter("ip", weir::fixed_window{.limit = 5, .window = 1min}, counters);
        limiter.give_back("client", limiter.admit("client", t(0)), t(1));
        auto spending = limiter.reserve("client", {.estimate = 3}, t(0));
        spending.settle(1, t(1));
        CHECK(counters.asked().size() == 2);
    }
}

TEST_CASE("a key counts as forgotten only where the store says so", "[limiter]")
{
    using weir::basis;
    for (const auto word : {basis::counted, basis::estimated, basis::local,
                            basis::store_unavailable}) {
        weir::testing::scripted_store counters({{weir::verdict::admitted, word}});
        const weir::limiter           limiter("ip", weir::fixed_window{.limit = 5}, counters);
        CHECK(limiter.forget("client", t(0)) == (word == basis::counted));
    }
}

TEST_CASE("an observer is told of each decision once", "[limiter]")
{
    std::atomic<int>    admitted{0}, refused{0};
    weir::memory_store  counters;
    const weir::limiter limiter("ip", weir::fixed_window{.limit = 2, .window = 1min}, counters, {},
                                tally{&admitted, &refused});
    for (int i = 0; i < 5; ++i) (void)limiter.admit("client", t(0));
    (void)limiter.peek("client", {}, t(0));
    CHECK(admitted == 2);
    CHECK(refused == 3);
}

TEST_CASE("a limiter cannot be made on a store that goes away at once", "[limiter]")
{
    using limiter = weir::limiter<weir::fixed_window, weir::memory_store>;
    static_assert(!std::is_constructible_v<limiter, std::string_view, const weir::fixed_window&,
                                           weir::memory_store>);
    static_assert(std::is_constructible_v<limiter, std::string_view, const weir::fixed_window&,
                                          weir::memory_store&>);
    SUCCEED("checked by the compiler");
}

TEST_CASE("without an instant the store's clock is read, and only once a question", "[limiter]")
{
    weir::testing::manual_clock clock(t(0));
    weir::memory_store          counters({.clock = clock.function()});
    const weir::limiter limiter("ip", weir::fixed_window{.limit = 1, .window = 1min}, counters);
    CHECK(limiter.admit("client"));
    CHECK(!limiter.admit("client"));
    CHECK(!limiter.peek("client"));
    clock.advance(1min);
    CHECK(limiter.peek("client"));
    const auto made = limiter.admit("client");
    CHECK(made.at == t(60'000));
    limiter.give_back("client", made);
    CHECK(limiter.admit("client"));
    CHECK(limiter.forget("client"));
    limiter.charge("client", {.cost = 1});
    CHECK(!limiter.admit("client"));
}
