// SPDX-License-Identifier: BSL-1.0

#include "weir/store/lockouts.hpp"

#include <chrono>
#include <cstdint>
#include <string>

#include "weir/limiter.hpp"
#include "weir/remote/outage.hpp"
#include "weir/signin/guard.hpp"
#include "weir/testing/manual_clock.hpp"

#include "catch.hpp"

using namespace std::chrono_literals;
using weir::basis;
using weir::lockout;

namespace {

constexpr auto at = weir::testing::manual_clock::new_year;

}  // namespace

TEST_CASE("no flood of new keys opens a door that is closed", "[lockout][memory]")
{
    weir::memory_store  counters({.max_keys = 100});
    const weir::limiter door("signin", lockout{.failures = 3}, counters);
    for (int n = 0; n < 4; ++n) (void)door.admit("bob", at);
    for (int n = 0; n < 100'000; ++n) (void)door.admit(std::to_string(n), at);
    CHECK_FALSE(door.admit("bob", at));
    CHECK(door.admit("bob", at + 15min));
}

TEST_CASE("keys without room share tries, which are estimated and never too few",
          "[lockout][memory]")
{
    weir::memory_store  counters({.max_keys = 20});
    const weir::limiter door("signin", lockout{.failures = 3}, counters);
    int                 estimated = 0;
    for (int n = 0; n < 500; ++n) {
        const auto who      = std::to_string(n);
        int        admitted = 0;
        for (int tries = 0; tries < 5; ++tries) {
            const auto made = door.admit(who, at);
            admitted += bool(made);
            estimated += made.basis == basis::estimated;
        }
        REQUIRE(admitted <= 3);
    }
    CHECK(estimated > 0);
    CHECK_FALSE(door.forget("499", at));
}

TEST_CASE("a key that gets a place later starts from what it shares", "[lockout][memory]")
{
    weir::memory_store  counters({.max_keys = 1});
    const weir::limiter door("signin", lockout{.failures = 3, .quiet = 1s}, counters);
    for (int n = 0; n < 40; ++n)
        for (int tries = 0; tries < 3; ++tries) (void)door.admit(std::to_string(n), at);
    // A second before the doors open the shared ones are closed for whoever asks first.
    const auto made = door.admit("39", at + 15min - 1s);
    CHECK_FALSE(made);
    CHECK(door.admit("39", at + 20min));
}

TEST_CASE("with overflow::refuse a key without room is refused as if the store were away",
          "[lockout][memory]")
{
    weir::memory_store  counters({.max_keys = 1, .overflow = weir::overflow::refuse});
    const weir::limiter door("signin", lockout{.failures = 3}, counters);
    int                 counted = 0, away = 0;
    for (int n = 0; n < 40; ++n) {
        const auto made = door.admit(std::to_string(n), at);
        counted += made.basis == basis::counted;
        away += made.basis == basis::store_unavailable && !made;
    }
    CHECK(counted == 7);
    CHECK(away == 33);
}

TEST_CASE("lockouts take less than 175 bytes for each key, taken at the start", "[lockout][memory]")
{
    weir::memory_store  counters({.max_keys = 10'000});
    const weir::limiter door("signin", lockout{}, counters);
    const auto          before = counters.bytes();
    CHECK(before < 175 * 10'000);
    for (int n = 0; n < 20'000; ++n) (void)door.admit(std::to_string(n), at);
    CHECK(counters.bytes() == before);
}

TEST_CASE("at the stated capacity fewer than one key in two hundred is estimated",
          "[lockout][memory]")
{
    weir::memory_store  counters({.max_keys = 10'000});
    const weir::limiter door("signin", lockout{}, counters);
    int                 estimated = 0;
    for (int n = 0; n < 10'000; ++n)
        estimated += door.admit(std::to_string(n), at).basis == basis::estimated;
    CHECK(estimated < 50);
}

TEST_CASE("a share of a lockout that closed in an outage is told as closed until the same instant",
          "[lockout][outage]")
{
    const lockout                 limit{.failures = 8};
    const auto                    rule = weir::local(4);
    weir::remote::outage<lockout> outage;
    outage.prepare("signin", limit, rule, 100);
    const weir::ask<lockout> question{.who = {1, 2}, .limit = limit};
    const auto               claim = [&](weir::instant when) {
        return weir::told(question, outage.answer(rule, question, when), "signin", when);
    };
    CHECK(claim(at));
    CHECK(claim(at + 1s));
    const auto refused = claim(at + 2s);
    CHECK_FALSE(refused);
    CHECK(refused.basis == basis::local);
    CHECK(refused.retry_after == 15min - 1s);
    CHECK_FALSE(claim(at + 1s + 15min - 1ns));
    CHECK(claim(at + 1s + 15min));
}
