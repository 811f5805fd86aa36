// SPDX-License-Identifier: BSL-1.0

#include "weir/signin/guard.hpp"

#include <chrono>
#include <string>
#include <vector>

#include "weir/store/memory.hpp"
#include "weir/testing/manual_clock.hpp"
#include "weir/testing/scripted_store.hpp"

#include "catch.hpp"

using namespace std::chrono_literals;
using weir::guard;
using weir::lockout;

namespace {

constexpr auto start = weir::testing::manual_clock::new_year;

struct room {
    weir::testing::manual_clock clock;
    weir::memory_store          counters{{.clock = clock.function()}};
};

const lockout a_day_of_20{.failures = 20, .window = 24h, .first = 24h, .longest = 24h};

}  // namespace

TEST_CASE("an attempt that nobody settles is a failure", "[guard]")
{
    room        here;
    const guard door("signin", lockout{}, here.counters);
    for (int n = 0; n < 5; ++n) CHECK(door.claim("bob"));
    CHECK_FALSE(door.claim("bob"));
    CHECK(door.claim("alice"));
}

TEST_CASE("only the outcome that is told first counts", "[guard]")
{
    room        here;
    const guard door("signin", lockout{}, here.counters);
    auto        attempt = door.claim("bob");
    CHECK(attempt.failed() == std::nullopt);
    attempt.succeeded();
    CHECK(door.look("bob")->failures == 1);
    auto other = door.claim("bob");
    other.succeeded();
    CHECK(other.failed() == std::nullopt);
    CHECK(door.look("bob")->failures == 1);
}

TEST_CASE("a refused attempt takes nothing back", "[guard]")
{
    room        here;
    const guard door("signin", lockout{.failures = 1}, here.counters);
    (void)door.claim("bob");
    auto refused = door.claim("bob");
    CHECK_FALSE(refused);
    refused.succeeded();
    CHECK(door.look("bob")->locked);
}

TEST_CASE("the failure that closes the door tells when it opens, the others tell nothing",
          "[guard]")
{
    room        here;
    const guard door("signin", lockout{.failures = 2}, here.counters);
    auto        first = door.claim("bob"), second = door.claim("bob");
    CHECK(first.failed() == std::nullopt);
    CHECK(second.failed() == start + 15min);
    CHECK(second.decision().left == 0);
    CHECK(door.claim("bob").decision().retry_after == 15min);
}

TEST_CASE("an attempt that is moved settles once, where it went", "[guard]")
{
    room        here;
    const guard door("signin", lockout{}, here.counters);
    auto        first = door.claim("bob");
    auto        moved = std::move(first);
    moved.succeeded();
    CHECK(door.look("bob")->failures == 0);
}

TEST_CASE("a success of one pair leaves the failures of others alone (O48)", "[guard]")
{
    room        here;
    const guard door("signin", lockout{}, here.counters);
    (void)door.claim(weir::parts{"bob", "A"});
    (void)door.claim(weir::parts{"alice", "A"});
    (void)door.claim(weir::parts{"bob", "B"});
    door.claim(weir::parts{"bob", "B"}).succeeded();
    CHECK(door.look(weir::parts{"bob", "A"})->failures == 1);
    CHECK(door.look(weir::parts{"alice", "A"})->failures == 1);
    CHECK(door.look(weir::parts{"bob", "B"})->failures == 1);
}

TEST_CASE("a success clears nothing but its place unless it is told to (L18)", "[guard]")
{
    room        here;
    const guard careful("careful", lockout{}, here.counters);
    for (int n = 0; n < 4; ++n) (void)careful.claim("bob");
    careful.claim("bob").succeeded();
    CHECK(careful.look("bob")->failures == 4);

    const guard forgiving("forgiving", lockout{}, here.counters,
                          {.tiers = {a_day_of_20}, .success = weir::success_clears::everything});
    for (int n = 0; n < 4; ++n) (void)forgiving.claim("bob");
    forgiving.claim("bob").succeeded();
    CHECK(forgiving.look("bob")->failures == 0);
    CHECK(forgiving.look("bob", start, 1)->failures == 0);
}

TEST_CASE("one guess every 3 min 45 s is stopped at 20 a day where a tier says so (L16)", "[guard]")
{
    room                       here;
    const guard                door("signin", lockout{}, here.counters, {.tiers = {a_day_of_20}});
    std::vector<weir::instant> guesses;
    for (auto at = start; at < start + 7 * 24h; at += 225s)
        if (door.claim("bob", at)) guesses.push_back(at);
    for (std::size_t n = 20; n < guesses.size(); ++n) REQUIRE(guesses[n] - guesses[n - 20] >= 24h);
    CHECK(guesses[19] == start + 19 * 225s);
    CHECK(guesses[20] == start + 19 * 225s + 24h);
}

TEST_CASE("a try that one tier refuses takes no place in another", "[guard]")
{
    room        here;
    const guard door("signin", lockout{}, here.counters, {.tiers = {a_day_of_20}});
    for (int n = 0; n < 12; ++n) (void)door.claim("bob");
    CHECK(door.look("bob", start, 1)->failures == 5);
    CHECK(door.tiers() == 2);
}

TEST_CASE("a store that is away refuses or admits by the outage rule, and never throws", "[guard]")
{
    using weir::verdict, weir::basis;
    weir::testing::scripted_store away({{verdict::refused, basis::store_unavailable}});
    const guard                   closed("signin", lockout{}, away);
    auto                          refused = closed.claim("bob");
    CHECK_FALSE(refused);
    CHECK(refused.decision().basis == basis::store_unavailable);
    CHECK_FALSE(closed.look("bob"));

    weir::testing::scripted_store open({{verdict::admitted, basis::store_unavailable}});
    const guard lenient("signin", lockout{}, open, {.on_outage = weir::fail_open});
    auto        admitted = lenient.claim("bob");
    CHECK(admitted);
    const auto asked = open.asked().size();
    CHECK(admitted.failed() == std::nullopt);
    lenient.claim("bob").succeeded();
    CHECK(open.asked().size() == asked + 1);
}

TEST_CASE(
    "an operator sees who is locked out, how often doubled and until when, and clears one key",
    "[guard]")
{
    room        here;
    const guard door("signin", lockout{}, here.counters);
    for (int n = 0; n < 5; ++n) (void)door.claim("bob"), (void)door.claim("eve");
    here.clock.advance(15min);
    for (int n = 0; n < 5; ++n) (void)door.claim("eve");
    (void)door.claim("alice");

    const auto locked = door.locked();
    REQUIRE(locked);
    REQUIRE(locked->size() == 1);
    const auto& eve = locked->front();
    CHECK(eve.who == door.digest("eve"));
    CHECK(eve.level == 1);
    CHECK(eve.until == start + 45min);
    CHECK(eve.firm_at == start + 15min + 30s);

    CHECK(door.clear(eve.who));
    CHECK(door.locked()->empty());
    CHECK(door.look("eve")->level == 0);
    CHECK(door.claim("eve"));
    CHECK(door.look("alice")->failures == 1);
}

TEST_CASE("a guard made again, or under another length, meets its failures again", "[guard]")
{
    room here;
    {
        const guard door("signin", lockout{}, here.counters);
        for (int n = 0; n < 4; ++n) (void)door.claim("bob");
    }
    const guard door("signin", lockout{.first = 30min}, here.counters);
    (void)door.claim("bob");
    CHECK(door.look("bob")->until == start + 30min);
}

TEST_CASE("wrong numbers of a guard are thrown when it is made, with its name", "[guard]")
{
    room here;
    CHECK_THROWS_WITH(guard("signin", lockout{.failures = 0}, here.counters),
                      Catch::Contains("signin") && Catch::Contains("failures is 0"));
}
