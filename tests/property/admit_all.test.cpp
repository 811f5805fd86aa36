// SPDX-License-Identifier: BSL-1.0

// Random sets over three kinds of limits: all or nothing, as a log of admissions has it.

#include "weir/admit_all.hpp"

#include "catch.hpp"
#include "reference/one_client.hpp"
#include "reference/oracle.hpp"
#include "reference/random.hpp"

#include "weir/limiter.hpp"
#include "weir/store/memory.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using reference::chance;
using reference::oracle;
using reference::random_number;
using reference::t;

namespace {

constexpr weir::fixed_window   ip{.limit = 6, .window = 1s};
constexpr weir::sliding_window net{.limit = 9, .window = 3s};
constexpr weir::gcra           user{.limit = 5, .window = 2s};

/// The three limits for one client each, as the definitions have them.
struct expected {
    oracle<weir::fixed_window>   by_ip{ip};
    oracle<weir::sliding_window> by_net{net};
    oracle<weir::gcra>           by_user{user};

    bool spend(unsigned which, std::uint64_t cost, std::int64_t at)
    {
        const auto one = [&](auto& due) {
            return (cost == 0 ? due.peek(0, at) : due.spend(cost, at)).admitted;
        };
        return which == 0 ? one(by_ip) : which == 1 ? one(by_net) : one(by_user);
    }
    std::array<std::uint64_t, 3> left(std::int64_t at) const
    {
        return {by_ip.peek(1, at).left, by_net.peek(1, at).left, by_user.peek(1, at).left};
    }
};

}  // namespace

TEST_CASE("a random set is admitted as a whole, or refused and nothing of it counted",
          "[admit_all]")
{
    weir::memory_store   counters;
    const weir::limiter  by_ip("ip", ip, counters);
    const weir::limiter  by_net("net", net, counters);
    const weir::limiter  by_user("user", user, counters);
    reference::generator random(40'000'000);
    expected             due;
    auto                 at       = t(0);
    std::uint64_t        admitted = 0;
    const auto           sets     = reference::steps(1'000'000) / 20;
    for (std::uint64_t i = 0; i < sets; ++i) {
        if (chance(random, 60))
            at += weir::duration(random_number<std::int64_t>(random, 0, 700'000'000));
        const auto                 now = at.time_since_epoch().count();
        std::vector<weir::pending> set;
        auto                       trial = due;
        bool                       fits  = true;
        for (auto asks = random_number(random, 1, 5); asks > 0; --asks) {
            const auto which = random_number(random, 0u, 2u);
            const auto cost  = random_number<std::uint64_t>(random, 0, 3);
            if (which == 0) set.push_back(by_ip("client", {cost}));
            else if (which == 1) set.push_back(by_net("client", {cost}));
            else set.push_back(by_user("client", {cost}));
            // A look at one unit wants it free before the set takes anything.
            fits &= cost == 0 ? due.spend(which, 0, now) : trial.spend(which, cost, now);
        }
        const auto made = weir::admit_all(set, at);
        REQUIRE(bool(made) == (fits && bool(made)));
        if (!made && fits) {
            // Only a look can refuse a set whose units fit: it finds that the set itself took the
            // last.
            bool looks = false;
            for (const auto& one : set) looks |= one.made().cost == 0;
            REQUIRE(looks);
        }
        REQUIRE(made.refused_by().empty() == bool(made));
        if (made) due = trial, ++admitted;
        const auto left = due.left(now);
        REQUIRE(by_ip.peek("client", {}, at).left == left[0]);
        REQUIRE(by_net.peek("client", {}, at).left == left[1]);
        REQUIRE(by_user.peek("client", {}, at).left == left[2]);
    }
    CHECK(admitted > sets / 20);
    CHECK(admitted < sets);
}

TEST_CASE("reservations settle to what the log says of estimate, surplus and refund",
          "[reservation]")
{
    weir::memory_store           counters;
    const weir::limiter          by_user("user", user, counters);
    const weir::limiter          by_net("net", net, counters);
    reference::generator         random(50'000'000);
    oracle<weir::gcra>           bucket(user);
    oracle<weir::sliding_window> sliding(net);
    auto                         at         = t(0);
    const auto                   settle_one = [&](const auto& limiter, auto& due) {
        const auto estimate = random_number<std::uint64_t>(random, 1, 4),
                   actual   = random_number<std::uint64_t>(random, 0, 6);
        auto spending = limiter.reserve("client", {.estimate = estimate}, at);
        REQUIRE(bool(spending) == due.spend(estimate, at.time_since_epoch().count()).admitted);
        const auto lapses = limiter.limit().lapses(spending.decision()).time_since_epoch().count();
        at += weir::duration(random_number<std::int64_t>(random, 0, 1'000'000'000));
        const auto now = at.time_since_epoch().count();
        if (chance(random, 90)) {
            spending.settle(actual, at);
            if (spending && actual > estimate) due.charge(actual - estimate, now);
            if (spending && actual < estimate) due.give_back(estimate - actual, lapses, now);
        }
        REQUIRE(limiter.peek("client", {}, at).left == due.peek(1, now).left);
    };
    for (auto i = reference::steps(1'000'000) / 20; i > 0; --i) {
        settle_one(by_user, bucket);
        settle_one(by_net, sliding);
    }
}
