// SPDX-License-Identifier: BSL-1.0

#include "weir/remote/lease.hpp"

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weir/policy/gcra.hpp"

#include "../../reference/random.hpp"
#include "catch.hpp"

using namespace std::chrono_literals;
using weir::basis;
using weir::duration;
using weir::instant;
using weir::verb;

namespace {

constexpr instant   start = std::chrono::sys_days(std::chrono::days(20'454));
constexpr weir::key alice{1, 2}, bob{3, 2};

/// Whether a limit of this policy can be written with a lease at all.
template <class P>
concept can_be_leased = requires(P limit)
{
    weir::leased{limit, 100};
};

static_assert(can_be_leased<weir::fixed_window> && can_be_leased<weir::sliding_window>);
static_assert(!can_be_leased<weir::gcra>, "its units have no window to end with");
static_assert(!can_be_leased<weir::leased<weir::fixed_window>>);

/// A process with leases, on a store whose clock is a minute ahead, a millisecond away.
template <class P>
struct process {
    explicit process(const P& limit_, std::uint64_t most_ = 100) : limit(limit_), most(most_) {}

    weir::ask<P> question(std::uint64_t cost = 1, verb act = verb::spend) const
    {
        return {.who = alice, .limit = limit, .cost = cost, .verb = act};
    }

    /// Asks the store for this one and `more` ahead.
    weir::reply<P> ask_store(std::uint64_t more, instant here, std::uint64_t cost = 1)
    {
        weir::reply<P> said;
        said.asked   = here + ahead + trip;
        said.granted = limit.spend(state, cost, 1 + more, said.asked);
        said.after   = state;
        said.at      = limit.judged_at(state, said.asked);
        leases.put(question(cost), said.granted > 0 ? said.granted - 1 : 0, said, here);
        return said;
    }

    auto take(instant here, std::uint64_t cost = 1) { return leases.take(question(cost), here); }

    /// As a store would admit: from the lease, or asking for more.
    bool admit(instant here, std::uint64_t cost = 1)
    {
        if (take(here, cost)) return ++from_lease, true;
        const auto more = leases.ahead(question(cost), most, here);
        asked_ahead.push_back(more);
        const auto said = ask_store(more, here, cost);
        return said.granted > 0;
    }

    static constexpr duration ahead = 1min, trip = 1ms;

    P                          limit;
    std::uint64_t              most;
    typename P::state          state = {};
    weir::remote::leases<P>    leases{64};
    std::uint64_t              from_lease = 0;
    std::vector<std::uint64_t> asked_ahead;
};

constexpr weir::fixed_window   fixed{.limit = 1'000, .window = 1min};
constexpr weir::sliding_window sliding{.limit = 1'000, .window = 1min};

}  // namespace

TEST_CASE("a leased limit is its limit with units beside it, and tells them apart", "[lease]")
{
    const weir::leased hot{weir::fixed_window{.limit = 60'000, .window = 1min}, 100};
    CHECK(hot.limit == 60'000);
    CHECK(hot.units == 100);
    CHECK(weir::leased{fixed}.units == 10);
    CHECK(hot != weir::leased{weir::fixed_window{.limit = 60'000, .window = 1min}, 101});
    CHECK(hot != weir::leased{weir::fixed_window{.limit = 60'001, .window = 1min}, 100});
    CHECK(hot.complaint().empty());
    CHECK(!weir::leased{weir::fixed_window{.window = 0s}, 1}.complaint().empty());
}

TEST_CASE("what was put is taken, each unit once, and then no more", "[lease]")
{
    const auto check = [](const auto& limit) {
        process    one(limit);
        const auto said = one.ask_store(3, start);
        for (int i = 0; i < 3; ++i) {
            const auto taken = one.take(start + 2ms);
            REQUIRE(taken);
            CHECK(taken->granted == 1);
            CHECK(taken->basis == basis::leased);
            CHECK(taken->after == said.after);
            const auto told = weir::told(one.question(), *taken, "hot", taken->asked);
            CHECK(told);
            CHECK(told.left == 996);
        }
        CHECK(!one.take(start + 2ms));
    };
    check(fixed), check(sliding), check(weir::leased{fixed, 3}), check(weir::leased{sliding, 3});
}

TEST_CASE("a lease holds units: a larger cost takes more of it, and none if it does not fit",
          "[lease]")
{
    process one(fixed);
    one.ask_store(2, start, 5);
    CHECK(!one.take(start + 2ms, 11));
    CHECK(one.take(start + 2ms, 7));
    CHECK(!one.take(start + 2ms, 4));
    CHECK(one.take(start + 2ms, 3));
    CHECK(!one.take(start + 2ms, 1));
}

TEST_CASE("a lease ends with its window, counted on the store's clock and not a tick later",
          "[lease]")
{
    process    one(fixed);
    const auto end = start + 1min - one.ahead;  // of the store's window, on our clock
    one.ask_store(10, end - 10s);
    // The store was asked a millisecond after it was sent, and in ten seconds our clock may have
    // fallen ten milliseconds behind: x with 1 ms - x + (10 s - x)/1000 = 0.
    CHECK(one.take(end - 10'989'011ns));
    CHECK(!one.take(end - 10'989'010ns));
    CHECK(!one.take(end));
    CHECK(!one.take(end + 30s));
    CHECK(one.take(end - 5s));
}

TEST_CASE("the instant of a leased decision lies in the window that was charged", "[lease]")
{
    const auto check = [](const auto& limit) {
        process    one(limit);
        const auto end  = start + 1min - one.ahead;
        const auto said = one.ask_store(10, end - 10s);
        for (const auto here : {end - 10s, end - 9s, end - 12ms}) {
            const auto taken = one.take(here);
            REQUIRE(taken);
            CHECK(taken->asked >= here + one.ahead);
            CHECK(weir::window_start(taken->at, 1min) == weir::window_start(said.at, 1min));
        }
    };
    check(fixed), check(sliding);
}

TEST_CASE("a key asked once leases nothing, and asked again and again it leases 1, 3, 7 … to the units",
          "[lease]")
{
    process one(fixed, 20);
    for (int i = 0; i < 100; ++i) CHECK(one.admit(start + i * 1ms));
    CHECK(one.asked_ahead == std::vector<std::uint64_t>{0, 1, 3, 7, 15, 20, 20, 20, 20});
    CHECK(one.from_lease == 100 - one.asked_ahead.size());
}

TEST_CASE("asks ahead are counted in units, and their cost keeps them within the bound", "[lease]")
{
    process one(fixed, 20);
    for (int i = 0; i < 20; ++i) CHECK(one.admit(start + i * 1ms, 6));
    CHECK(*std::ranges::max_element(one.asked_ahead) == 3);
    CHECK(one.leases.ahead(one.question(0), 20, start + 20ms) == 0);
    CHECK(one.leases.ahead(one.question(6, verb::charge), 20, start + 20ms) == 0);
}

TEST_CASE("a new window begins without a lease and at nothing ahead", "[lease]")
{
    process one(fixed, 20);
    for (int i = 0; i < 50; ++i) one.admit(start + i * 1ms);
    one.asked_ahead.clear();
    for (int i = 0; i < 4; ++i) one.admit(start + 1min + i * 1ms);
    CHECK(one.asked_ahead == std::vector<std::uint64_t>{0, 1, 3});
}

TEST_CASE("waste is at most the units, and at most half of what the process was granted", "[lease]")
{
    reference::generator random(3);
    int                  wrong = 0;
    for (int round = 0; round < 2'000; ++round) {
        process       one(fixed, 1 + random() % 50);
        std::uint64_t used = 0;
        for (auto asks = random() % 300; asks > 0; --asks) {
            const auto cost = 1 + random() % 4;
            if (one.admit(start + duration(random() % 1'000'000'000), cost)) used += cost;
        }
        const auto granted = one.state.used;
        wrong += granted > 1'000 || used > granted || granted - used > one.most ||
                 2 * (granted - used) > granted;
    }
    CHECK(wrong == 0);
}

TEST_CASE("of asks under way at once one asks ahead, until it is answered or a second is over",
          "[lease]")
{
    process one(fixed, 20);
    one.ask_store(0, start);
    CHECK(one.leases.ahead(one.question(), 20, start + 2ms) == 1);
    CHECK(one.leases.ahead(one.question(), 20, start + 3ms) == 0);
    CHECK(one.leases.ahead(one.question(), 20, start + 1s + 2ms) == 1);
    one.ask_store(0, start + 1s + 3ms);
    CHECK(one.leases.ahead(one.question(), 20, start + 1s + 4ms) == 0);
    one.ask_store(1, start + 1s + 3ms);
    CHECK(one.leases.ahead(one.question(), 20, start + 1s + 5ms) == 2);
}

TEST_CASE("only a spend by one caller is answered from a lease", "[lease]")
{
    process one(fixed);
    one.ask_store(9, start);
    for (const auto act : {verb::peek, verb::charge, verb::give_back, verb::forget})
        CHECK(!one.leases.take(one.question(1, act), start + 2ms));
    CHECK(!one.take(start + 2ms, 0));
    auto two  = one.question();
    two.times = 2;
    CHECK(!one.leases.take(two, start + 2ms));
    auto other = one.question();
    other.who  = bob;
    CHECK(!one.leases.take(other, start + 2ms));
    CHECK(one.take(start + 2ms));
}

TEST_CASE("a lease that was given up is gone, and so is what the key had used", "[lease]")
{
    process one(fixed);
    one.ask_store(9, start);
    one.leases.drop(bob);
    CHECK(one.take(start + 2ms));
    one.leases.drop(alice);
    CHECK(!one.take(start + 2ms));
    CHECK(one.leases.ahead(one.question(), 20, start + 2ms) == 0);
}

TEST_CASE(
    "under a lowered limit a lease rests until the store grants under it, a raised one uses it",
    "[lease]")
{
    process one(fixed);
    one.ask_store(9, start);
    one.limit.limit = 5;
    CHECK(!one.take(start + 2ms));
    CHECK(one.ask_store(0, start + 3ms).granted == 0);
    CHECK(!one.take(start + 5ms));
    one.limit.limit = 11;
    CHECK(one.ask_store(0, start + 6ms).granted == 1);
    CHECK(one.take(start + 8ms));
    one.limit.limit = 2'000;
    CHECK(one.take(start + 9ms));
}

TEST_CASE("before the ask of its lease was sent a clock takes nothing", "[lease]")
{
    process one(fixed);
    one.ask_store(9, start);
    CHECK(!one.take(start - 1ns));
    CHECK(!one.take(instant::min()));
    CHECK(!one.take(instant::max()));
    CHECK(one.take(start));
}

TEST_CASE("a reply of a window that is over does not end the lease of the one after", "[lease]")
{
    process    one(fixed);
    const auto late = one.ask_store(5, start);
    one.ask_store(5, start + 1min);
    one.leases.put(one.question(), 5, late, start);
    CHECK(one.take(start + 1min + 2ms));
}

TEST_CASE("a store whose clock was set back gives leases of its new time", "[lease]")
{
    process one(fixed);
    one.ask_store(5, start + 48h);
    auto said = one.ask_store(5, start + 48h + 1ms);
    said.asked -= 24h;
    said.at -= 24h;
    one.leases.put(one.question(), 5, said, start + 48h + 2ms);
    const auto taken = one.take(start + 48h + 3ms);
    REQUIRE(taken);
    CHECK(taken->asked < start + 25h);
}

TEST_CASE("only what an exact counter granted is put", "[lease]")
{
    process one(fixed);
    for (const auto on : {basis::leased, basis::remembered, basis::estimated, basis::local,
                          basis::store_unavailable}) {
        auto said  = weir::reply<weir::fixed_window>{.granted = 5};
        said.asked = start;
        said.at    = start;
        said.basis = on;
        one.leases.put(one.question(), 4, said, start);
        CHECK(!one.take(start));
    }
}

TEST_CASE("keys asked once do not push out a hot one, nor take more memory", "[lease]")
{
    reference::generator random(9);
    process              one(fixed, 20);
    const auto           bytes = one.leases.bytes();
    CHECK(bytes <= 64 * 112 + 64);
    for (int i = 0; i < 30; ++i) one.admit(start + i * 1ms);
    auto other   = one.question();
    auto said    = one.ask_store(10, start + 30ms);
    said.granted = 1;
    for (int i = 0; i < 100'000; ++i) {
        other.who = {random(), random()};
        one.leases.put(other, 0, said, start + 31ms);
    }
    CHECK(one.take(start + 32ms));
    CHECK(one.leases.bytes() == bytes);
}

TEST_CASE("with room for nothing nothing is leased", "[lease]")
{
    weir::remote::leases<weir::fixed_window> none(0);
    weir::reply<weir::fixed_window>          said{.granted = 5};
    said.asked = said.at = start;
    const weir::ask<weir::fixed_window> asked{.who = alice, .limit = fixed};
    none.put(asked, 4, said, start);
    CHECK(!none.take(asked, start));
    CHECK(none.ahead(asked, 10, start) == 0);
}
