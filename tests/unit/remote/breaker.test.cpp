// SPDX-License-Identifier: BSL-1.0

#include "weir/remote/breaker.hpp"

#include <chrono>
#include <set>

#include "catch.hpp"

using namespace std::chrono_literals;
using weir::remote::breaker;

namespace {

constexpr breaker::time_point start{1'000s};

/// Opens it at `start`.
void open(breaker& one)
{
    for (int i = 0; i < 5; ++i) one.failed(start);
}

/// How long after `start` an open one lets the first probe go, in milliseconds.
int first_probe(breaker& one)
{
    int after = 0;
    while (!one.allow(start + after * 1ms)) ++after;
    return after;
}

}  // namespace

TEST_CASE("it opens at the fifth failure in a row, and only that one is told so", "[breaker]")
{
    breaker one({}, 1);
    for (int i = 0; i < 4; ++i) {
        CHECK(!one.failed(start));
        CHECK(one.allow(start));
    }
    CHECK(!one.open());
    CHECK(one.failed(start));
    CHECK(one.open());
    CHECK(!one.failed(start));
    CHECK(!one.allow(start));
}

TEST_CASE("a success between failures begins the count again", "[breaker]")
{
    breaker one({}, 1);
    for (int i = 0; i < 20; ++i) {
        CHECK(!one.failed(start));
        if (i % 4 == 3) CHECK(!one.succeeded());
    }
    CHECK(one.allow(start));
}

TEST_CASE("open it lets one probe go in each pause, from 0.8 to 1.2 of half a second", "[breaker]")
{
    breaker one({}, 1);
    open(one);
    auto at = start;
    for (int probes = 0; probes < 100; ++probes) {
        auto next = at;
        while (!one.allow(next)) next += 1ms;
        CHECK(next - at >= 400ms);
        CHECK(next - at <= 600ms);
        CHECK(!one.allow(next));
        at = next;
    }
}

TEST_CASE("pauses differ from breaker to breaker, and from one probe to the next", "[breaker]")
{
    std::set<int> of_seeds;
    for (unsigned seed = 0; seed < 20; ++seed) {
        breaker one({}, seed);
        open(one);
        of_seeds.insert(first_probe(one));
    }
    CHECK(of_seeds.size() > 10);

    breaker first, second;
    open(first), open(second);
    std::set<int> probes;
    for (int i = 0; i < 20; ++i) {
        probes.insert(first_probe(first));
        first.succeeded();
        open(first);
    }
    CHECK(probes.size() > 10);
    CHECK(first_probe(second) >= 400);
}

TEST_CASE("a failed probe changes nothing, a good one closes and is told so once", "[breaker]")
{
    breaker one({}, 1);
    open(one);
    const auto probe = start + first_probe(one) * 1ms;
    CHECK(!one.failed(probe));
    CHECK(!one.allow(probe + 399ms));
    CHECK(one.allow(probe + 601ms));
    CHECK(one.succeeded());
    CHECK(!one.succeeded());
    CHECK(!one.open());
    CHECK(one.allow(probe + 602ms));
}

TEST_CASE("closed again it takes as many failures as the first time to open", "[breaker]")
{
    breaker one({}, 1);
    open(one);
    for (int i = 0; i < 10; ++i) one.failed(start);
    CHECK(one.succeeded());
    for (int i = 0; i < 4; ++i) CHECK(!one.failed(start));
    CHECK(one.failed(start));
}

TEST_CASE("how many failures and how long a pause are options", "[breaker]")
{
    breaker one({.failures = 1, .pause = 10s}, 1);
    CHECK(one.failed(start));
    CHECK(!one.allow(start + 7'999ms));
    CHECK(one.allow(start + 12'001ms));
    breaker none({.failures = 0}, 1);
    CHECK(none.allow(start));
    CHECK(none.failed(start));
}

TEST_CASE("a clock that starts at zero, or stands before it, is a clock", "[breaker]")
{
    breaker one({}, 1);
    CHECK(one.allow(breaker::time_point{}));
    for (int i = 0; i < 5; ++i) one.failed(breaker::time_point{-10s});
    CHECK(one.open());
    CHECK(!one.allow(breaker::time_point{-10s}));
    CHECK(one.allow(breaker::time_point{}));
}
