// SPDX-License-Identifier: BSL-1.0

#include "weir/remote/memo.hpp"

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "weir/policy/fixed_window.hpp"
#include "weir/policy/gcra.hpp"
#include "weir/policy/sliding_window.hpp"

#include "../../reference/random.hpp"
#include "catch.hpp"

using namespace std::chrono_literals;
using weir::basis;
using weir::duration;
using weir::instant;
using weir::verb;

namespace {

constexpr instant   start = std::chrono::sys_days(std::chrono::days(20'454));
constexpr weir::key alice{1, 2}, bob{3, 4};

/// A store whose clock is `ahead` of this process's, with a trip of a millisecond each way, and
/// the memo before it.
template <weir::policy P>
struct remembering {
    explicit remembering(const P& limit_, duration longest = 1s) : limit(limit_), memo(64, longest)
    {
    }

    weir::ask<P> question(std::uint64_t cost, verb act = verb::spend) const
    {
        return {.who = alice, .limit = limit, .cost = cost, .verb = act};
    }

    /// The store is asked at `here`; what it says is not heard yet.
    weir::reply<P> ask_store(const weir::ask<P>& asked, instant here)
    {
        weir::reply<P> said;
        said.asked        = here + ahead + trip;
        said.at           = limit.judged_at(state, said.asked);
        const auto lapses = instant::max();
        if (asked.verb == verb::spend) said.granted = limit.spend(state, asked.cost, 1, said.asked);
        else if (asked.verb == verb::charge) limit.charge(state, asked.cost, said.asked);
        else if (asked.verb == verb::give_back)
            limit.give_back(state, asked.cost, window_lapse(lapses, said.asked), said.asked);
        else if (asked.verb == verb::forget) state = {};
        said.after = state;
        return said;
    }
    instant window_lapse(instant otherwise, instant at) const
    {
        return P::id == weir::gcra::id ? otherwise : weir::window_end(at, limit.window);
    }
    void hear(const weir::ask<P>& asked, const weir::reply<P>& said, instant here)
    {
        memo.heard(asked, said, here + 2 * trip);
    }
    weir::reply<P> ask(std::uint64_t cost, instant here, verb act = verb::spend)
    {
        const auto said = ask_store(question(cost, act), here);
        hear(question(cost, act), said, here);
        return said;
    }
    auto remembered(std::uint64_t cost, instant here) const
    {
        return memo.refusal(question(cost), here);
    }
    bool refuses(std::uint64_t cost, instant here) const { return bool(remembered(cost, here)); }

    static constexpr duration ahead = 5min, trip = 1ms;

    P                     limit;
    weir::remote::memo<P> memo;
    typename P::state     state = {};
};

constexpr weir::fixed_window   fixed{.limit = 10, .window = 1h};
constexpr weir::sliding_window sliding{.limit = 10, .window = 1h};
constexpr weir::gcra           bucket{.limit = 10, .window = 1h};

template <class Check>
void for_each_policy(Check&& check)
{
    check(fixed), check(sliding), check(bucket);
}

/// Random spends of one key by this process and others, with trips of all lengths: counts what
/// memory refused against the store, and waits that did not lead to an answer of the store.
template <weir::policy P>
struct random_flood {
    random_flood(const P& limit_, std::uint64_t seed) : limit(limit_), random(seed) {}

    void run()
    {
        for (std::uint64_t i = 0; i < reference::steps(50'000); ++i) {
            here += some(20ms);
            asked.cost = 1 + random() % 3;
            if (reference::chance(random, 20)) spend(1, here + ahead);  // another process
            const auto said = memo.refusal(asked, here);
            said ? judge(*said) : ask();
        }
    }

    void ask()
    {
        weir::reply<P> said;
        said.asked   = here + ahead + some(3ms);
        said.granted = spend(asked.cost, said.asked);
        said.at      = limit.judged_at(state_at(said.asked), said.asked);
        said.after   = state_at(said.asked);
        here         = said.asked - ahead + some(3ms);
        memo.heard(asked, said, here);
        const auto told = weir::told(asked, said, "", said.asked);
        if (told || !told.retry_after) return;
        late += memo.refusal(asked, here + *told.retry_after).has_value();
        if (*told.retry_after < 1s)
            lenient += !memo.refusal(asked, here + *told.retry_after - 1ns).has_value();
    }

    void judge(const weir::reply<P>& said)
    {
        auto       trial = state_at(said.asked);
        const auto told  = weir::told(asked, said, "", said.asked);
        ++refused;
        wrong += said.asked > here + ahead || told;
        wrong += limit.spend(trial, asked.cost, 1, said.asked) != 0;
        late += memo.refusal(asked, here + *told.retry_after).has_value();
    }

    std::uint64_t spend(std::uint64_t cost, instant at)
    {
        auto       state   = history.back().second;
        const auto granted = limit.spend(state, cost, 1, at);
        history.emplace_back(at, state);
        return granted;
    }
    typename P::state state_at(instant at) const
    {
        auto one = history.rbegin();
        while (one->first > at) ++one;
        return one->second;
    }
    duration some(duration most)
    {
        return duration(reference::random_number(random, std::int64_t{0}, most.count()));
    }

    static constexpr duration ahead = 3s + 7ns;

    P                     limit;
    reference::generator  random;
    weir::remote::memo<P> memo{16, 1s};
    weir::ask<P>          asked{.who = alice, .limit = limit};
    instant               here    = start;
    std::uint64_t         refused = 0, wrong = 0, late = 0, lenient = 0;

    std::vector<std::pair<instant, typename P::state>> history{{instant::min(), {}}};
};

}  // namespace

TEST_CASE("a refusal is remembered as the store told it, judged at an instant that it has passed",
          "[memo]")
{
    for_each_policy([](const auto& limit) {
        remembering one(limit);
        one.ask(10, start);
        const auto said = one.ask(1, start + 1s);
        REQUIRE(said.granted == 0);
        const auto again = one.remembered(1, start + 1s + 2ms + 300ms);
        REQUIRE(again);
        CHECK(again->granted == 0);
        CHECK(again->after == said.after);
        CHECK(again->asked == said.asked + 300ms);
        CHECK(again->at == said.at + 300ms);
        CHECK(again->basis == basis::remembered);
        CHECK(again->ahead == 0);
    });
}

TEST_CASE("who has waited for retry_after is not refused from memory, one tick earlier is",
          "[memo]")
{
    const auto check = [](const auto& limit, std::uint64_t all) {
        remembering one(limit, 10s);
        const auto  at = start + 500ms - one.ahead - one.trip;  // half a window is left
        one.ask(all, at);
        const auto said = one.ask(1, at);
        REQUIRE(said.granted == 0);
        const auto told = weir::told(one.question(1), said, "", said.asked);
        REQUIRE(told.retry_after);
        const auto come = at + 2 * one.trip;
        CHECK(one.refuses(1, come + *told.retry_after - limit.tick));
        CHECK(!one.refuses(1, come + *told.retry_after));

        const auto again = one.remembered(1, come + *told.retry_after / 2);
        REQUIRE(again);
        const auto retold = weir::told(one.question(1), *again, "", again->asked);
        CHECK(retold.retry_after == *told.retry_after - *told.retry_after / 2);
    };
    struct whole_nanoseconds : weir::fixed_window {
        duration tick = 1ns;
    };
    struct bucket_of_nanoseconds : weir::gcra {
        duration tick = 1ns;
    };
    check(whole_nanoseconds{{.limit = 10, .window = 1s}}, 10);
    check(weir::sliding_window{.limit = 10, .window = 1s}, 10);
    check(bucket_of_nanoseconds{{.limit = 10, .window = 1s}}, 10);
}

TEST_CASE("memory refuses only what the store would, and nobody who waited as told", "[memo]")
{
    const auto check = [](const auto& limit) {
        random_flood flood(limit, 11);
        flood.run();
        CHECK(flood.refused > 1'000);
        CHECK(flood.wrong == 0);
        CHECK(flood.late == 0);
        CHECK(flood.lenient == 0);
    };
    check(weir::fixed_window{.limit = 10, .window = 1s});
    check(weir::sliding_window{.limit = 10, .window = 1s});
    check(weir::gcra{.limit = 10, .window = 1s, .burst = 4});
}

TEST_CASE("a refusal is forgotten when it is as old as allowed", "[memo]")
{
    for_each_policy([](const auto& limit) {
        remembering one(limit, 1s);
        one.ask(10, start);
        one.ask(1, start);
        CHECK(one.refuses(1, start + 2ms + 1s - 1ns));
        CHECK(!one.refuses(1, start + 2ms + 1s));
        one.ask(1, start + 2s);
        CHECK(one.refuses(1, start + 2s + 2ms));
    });
}

TEST_CASE("the ask that takes the last unit is remembered as the refusal of the next", "[memo]")
{
    for_each_policy([](const auto& limit) {
        remembering one(limit);
        CHECK(one.ask(10, start).granted == 1);
        CHECK(one.refuses(1, start + 2ms));
    });
}

TEST_CASE("a charge that leaves nothing is remembered, one that leaves enough is not", "[memo]")
{
    for_each_policy([](const auto& limit) {
        remembering one(limit);
        one.ask(4, start, verb::charge);
        CHECK(!one.refuses(7, start + 2ms));
        one.ask(9, start, verb::charge);
        CHECK(one.refuses(1, start + 2ms));
    });
}

TEST_CASE("a smaller cost that fits passes what a larger one was refused", "[memo]")
{
    for_each_policy([](const auto& limit) {
        remembering one(limit);
        one.ask(7, start);
        REQUIRE(one.ask(4, start).granted == 0);
        CHECK(one.refuses(4, start + 2ms));
        CHECK(!one.refuses(3, start + 2ms));
        CHECK(!one.refuses(0, start + 2ms));
    });
}

TEST_CASE("a raised limit or burst passes at once, and set back it refuses as before", "[memo]")
{
    const auto check = [](auto limit, auto raised) {
        remembering one(limit);
        one.ask(10, start);
        one.ask(1, start);
        REQUIRE(one.refuses(1, start + 2ms));
        one.limit = raised;
        CHECK(!one.refuses(1, start + 2ms));
        one.limit = limit;
        CHECK(one.refuses(1, start + 2ms));
    };
    check(fixed, weir::fixed_window{.limit = 11, .window = 1h});
    check(sliding, weir::sliding_window{.limit = 11, .window = 1h});
    check(bucket, weir::gcra{.limit = 10, .window = 1h, .burst = 11});
}

TEST_CASE("only a spend is answered from memory", "[memo]")
{
    remembering one(fixed);
    one.ask(10, start);
    for (const auto act : {verb::peek, verb::charge, verb::give_back, verb::forget})
        CHECK(!one.memo.refusal(one.question(1, act), start + 2ms));
    CHECK(one.refuses(1, start + 2ms));
}

TEST_CASE("keys do not share a memory, and a dropped one is asked about again", "[memo]")
{
    remembering one(fixed);
    one.ask(10, start);
    auto other = one.question(1);
    other.who  = bob;
    CHECK(!one.memo.refusal(other, start + 2ms));
    one.memo.drop(bob);
    CHECK(one.refuses(1, start + 2ms));
    one.memo.drop(alice);
    CHECK(!one.refuses(1, start + 2ms));
}

TEST_CASE("a newer reply that admits replaces what was remembered", "[memo]")
{
    for_each_policy([](const auto& limit) {
        remembering one(limit);
        one.ask(10, start);
        REQUIRE(one.refuses(1, start + 2ms));
        one.state = {};  // another process gave back
        REQUIRE(one.ask(1, start + 5ms).granted == 1);
        CHECK(!one.refuses(1, start + 8ms));
    });
}

TEST_CASE("after a give-back or forget no reply from before it refuses, whenever it is heard",
          "[memo]")
{
    for_each_policy([](const auto& limit) {
        for (const auto act : {verb::give_back, verb::forget}) {
            remembering one(limit);
            one.ask(10, start);
            const auto refused = one.ask_store(one.question(1), start + 10ms);
            REQUIRE(refused.granted == 0);
            one.memo.drop(alice);
            one.ask(5, start + 11ms, act);
            one.hear(one.question(1), refused, start + 10ms);  // by a thread that was held up
            CHECK(!one.refuses(1, start + 14ms));
            one.ask(1, start + 15ms);
            one.hear(one.question(1), refused, start + 10ms);
            CHECK(!one.refuses(1, start + 18ms));
        }
    });
}

TEST_CASE("a give-back in the same tick as a refusal counts as the later of the two", "[memo]")
{
    for (const bool refusal_first : {true, false}) {
        remembering one(fixed);
        const auto  full  = one.ask_store(one.question(10), start);
        const auto  given = one.ask_store(one.question(5, verb::give_back), start);
        if (refusal_first) one.hear(one.question(1), full, start);
        one.hear(one.question(5, verb::give_back), given, start);
        if (!refusal_first) one.hear(one.question(1), full, start);
        CHECK(!one.refuses(1, start + 2ms));
    }
}

TEST_CASE("a store whose clock was set back is believed again once the old memory is too old",
          "[memo]")
{
    remembering one(fixed);
    auto        said = one.ask(10, start);
    said.asked -= 1min;
    said.after.used = 5;
    one.hear(one.question(1), said, start + 10ms);
    CHECK(one.refuses(1, start + 12ms));
    one.hear(one.question(1), said, start + 1s);
    CHECK(!one.refuses(1, start + 1s + 2ms));
}

TEST_CASE("only what an exact counter said is remembered", "[memo]")
{
    for (const auto on : {basis::leased, basis::remembered, basis::estimated, basis::local,
                          basis::store_unavailable}) {
        remembering one(fixed);
        auto        said = one.ask_store(one.question(10), start);
        said.basis       = on;
        one.hear(one.question(1), said, start);
        CHECK(!one.refuses(1, start + 2ms));
    }
}

TEST_CASE("where this process's clock stands does not matter, and before the reply it knows none",
          "[memo]")
{
    remembering one(fixed);
    one.ask(10, start - 24h * 365);
    CHECK(one.refuses(1, start - 24h * 365 + 2ms));
    CHECK(!one.refuses(1, start - 24h * 365 + 2ms - 1ns));
    CHECK(!one.refuses(1, instant::min()));
    CHECK(!one.refuses(1, instant::max()));
}

TEST_CASE("a million exhausted keys take no more memory than stated", "[memo]")
{
    weir::remote::memo<weir::sliding_window> memo(1'000, 1s);
    const auto                               bytes = memo.bytes();
    CHECK(bytes <= 1'024 * 64 + 256);
    reference::generator              random(5);
    weir::ask<weir::sliding_window>   asked{.limit = sliding};
    weir::reply<weir::sliding_window> said;
    sliding.charge(said.after, 10, start);
    said.asked = said.at = start;
    int refused          = 0;
    for (int i = 0; i < 1'000'000; ++i) {
        asked.who = {random(), random()};
        memo.heard(asked, said, start);
        refused += memo.refusal(asked, start).has_value();
    }
    CHECK(refused == 1'000'000);
    CHECK(memo.bytes() == bytes);
}
