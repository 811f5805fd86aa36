// SPDX-License-Identifier: BSL-1.0

#include "weir/remote/outage.hpp"

#include <chrono>
#include <cstdint>
#include <random>

#include "weir/testing/manual_clock.hpp"

#include "../../reference/random.hpp"
#include "catch.hpp"

using namespace std::chrono_literals;
using weir::basis;
using weir::verb;

namespace {

constexpr auto at = weir::testing::manual_clock::new_year;

/// A limiter of which the store does not answer any more.
template <weir::policy Policy>
struct cut_off {
    cut_off(const Policy& limit_, weir::outage_rule rule_) : limit(limit_), rule(rule_)
    {
        outage.prepare("limiter", limit, rule, 100);
    }

    weir::decision admit(std::uint64_t cost, weir::instant when = at)
    {
        const weir::ask<Policy> question{.who = {1, 2}, .limit = limit, .cost = cost};
        return weir::told(question, outage.answer(rule, question, when), "limiter", when);
    }
    void heard(verb act, std::uint64_t cost, std::uint64_t granted)
    {
        outage.heard(rule, {.who = {1, 2}, .limit = limit, .cost = cost, .verb = act},
                     {.granted = granted, .after = {}, .at = at});
    }

    Policy                       limit;
    weir::outage_rule            rule;
    weir::remote::outage<Policy> outage;
};

}  // namespace

TEST_CASE("closed is refused and open is admitted, and the basis tells which kind of word it is",
          "[remote]")
{
    cut_off closed(weir::fixed_window{.limit = 5}, weir::fail_closed);
    cut_off open(weir::fixed_window{.limit = 5}, weir::fail_open);
    CHECK(!closed.admit(1));
    CHECK(closed.admit(1).basis == basis::store_unavailable);
    CHECK(!closed.admit(1).retry_after);
    CHECK(open.admit(1));
    CHECK(open.admit(1).basis == basis::store_unavailable);
}

TEST_CASE("a local limiter gives this process its share and no more", "[remote]")
{
    cut_off quarter(weir::fixed_window{.limit = 12, .window = 1min}, weir::local(4));
    for (std::uint64_t left = 3; left-- > 0;) CHECK(quarter.admit(1).left == left);
    const auto refused = quarter.admit(1);
    CHECK(!refused);
    CHECK(refused.basis == basis::local);
    CHECK(refused.retry_after == 1min);
    CHECK(quarter.admit(1, at + 1min));
}

TEST_CASE("a share is never nothing, except of a limit of 0", "[remote]")
{
    CHECK(weir::remote::share_of(weir::fixed_window{.limit = 3}, 10).limit == 1);
    CHECK(weir::remote::share_of(weir::fixed_window{.limit = 0}, 10).limit == 0);
    CHECK(weir::remote::share_of(weir::gcra{.limit = 30, .burst = 20}, 10) ==
          weir::gcra{.limit = 3, .burst = 2});
    CHECK(weir::remote::share_of(weir::sliding_window{.limit = 30}, 0).limit == 30);
}

TEST_CASE("the local limiter is warm: what the store granted to this process before counts",
          "[remote]")
{
    cut_off half(weir::fixed_window{.limit = 10, .window = 1min}, weir::local(2));
    half.heard(verb::spend, 2, 2);
    CHECK(half.admit(1).left == 0);
    CHECK(!half.admit(1));
    half.heard(verb::forget, 1, 0);
    CHECK(half.admit(1).left == 4);
}

TEST_CASE("a refusal of the store does not cool or warm the local limiter", "[remote]")
{
    cut_off half(weir::fixed_window{.limit = 10, .window = 1min}, weir::local(2));
    half.heard(verb::spend, 2, 0);
    half.heard(verb::peek, 2, 0);
    CHECK(half.admit(1).left == 4);
}

TEMPLATE_TEST_CASE("whoever waits as a local limiter says is admitted by it", "[remote]",
                   weir::fixed_window, weir::sliding_window, weir::gcra)
{
    reference::generator random(20'260'731);
    for (int round = 0; round < 3'000; ++round) {
        const auto limit     = reference::random_number<std::uint64_t>(random, 1, 60);
        const auto processes = reference::random_number<std::uint32_t>(random, 1, 5);
        cut_off    one(TestType{.limit = limit, .window = 1s}, weir::local(processes));
        auto       when = at;
        for (int step = 0; step < 8; ++step) {
            when += weir::duration(reference::random_number<std::int64_t>(random, 0, 700'000'000));
            const auto cost = reference::random_number<std::uint64_t>(random, 1, 6);
            const auto made = one.admit(cost, when);
            if (made || !made.retry_after) continue;
            if (cost > weir::remote::share_of(one.limit, processes).capacity()) continue;
            REQUIRE(*made.retry_after > 0s);
            when += *made.retry_after;
            REQUIRE(one.admit(cost, when));
        }
    }
}
