// SPDX-License-Identifier: BSL-1.0

// Lockouts against an oracle that packs nothing, on the policy and on a store in the process, and
// the bounds that they promise.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "weir/limiter.hpp"
#include "weir/policy/lockout.hpp"
#include "weir/store/memory.hpp"
#include "weir/testing/manual_clock.hpp"

#include "catch.hpp"
#include "reference/lockout_oracle.hpp"
#include "reference/random.hpp"

using namespace std::chrono_literals;
using weir::lockout;

namespace {

constexpr auto new_year = weir::testing::manual_clock::new_year;

}  // namespace

TEST_CASE("350000 random asks of lockouts in memory are told what a list of instants tells",
          "[lockout][property]")
{
    reference::generator random(20'261'130);
    for (const auto& limit : reference::lockouts()) {
        REQUIRE(limit.complaint() == "");
        weir::memory_store                   memory({.max_keys = 1'000, .seed = {{1, 2}}});
        auto* const                          counters = memory.enrol("door", limit);
        std::vector<reference::lockout_life> lives(4, reference::lockout_life(limit));
        auto                                 at = new_year;
        for (std::uint64_t step = 0; step < reference::steps(50'000); ++step) {
            at                = reference::stepped(random, limit, at);
            const auto which  = random() % lives.size();
            auto       asked  = lives[which].next(random);
            asked.who         = memory.digest(counters, std::to_string(which));
            const auto answer = memory.answer(counters, asked, at);
            INFO("failures " << limit.failures << ", step " << step);
            REQUIRE(lives[which].agrees(asked, answer, at));
        }
    }
}

TEST_CASE(
    "a refused try is admitted exactly when retry_after has passed, and not a nanosecond sooner",
    "[lockout][property]")
{
    reference::generator random(7);
    for (const auto& limit : reference::lockouts()) {
        lockout::state state;
        auto           at      = new_year;
        std::uint64_t  refused = 0;
        for (int step = 0; step < 20'000; ++step) {
            if (reference::chance(random, 5)) at = reference::stepped(random, limit, at);
            auto trial = state;
            if (limit.spend(trial, 1, 1, at) == 0) {
                ++refused;
                const auto wait = limit.read(state, 1, at).wait;
                auto       then = state;
                REQUIRE(limit.spend(then, 1, 1, at + wait - 1ns) == 0);
                REQUIRE(limit.spend(then, 1, 1, at + wait) == 1);
            } else {
                state = trial;
            }
        }
        CHECK(refused > 100);
    }
}

TEST_CASE("no span of a window holds more failures than there are places, however they come",
          "[lockout][property]")
{
    reference::generator random(11);
    for (const auto& limit : reference::lockouts()) {
        lockout::state             state;
        std::vector<weir::instant> failed;
        auto                       at = new_year;
        for (int step = 0; step < 20'000; ++step) {
            at += weir::duration(
                reference::random_number<std::int64_t>(random, 0, limit.window.count() / 8));
            if (limit.spend(state, 1, 1, at) == 0) continue;
            // Some succeed: then what they took is no failure.
            if (reference::chance(random, 40))
                limit.give_back(state, 1, at + limit.outcome_within, at);
            else failed.push_back(at);
        }
        for (std::size_t i = limit.failures; i < failed.size(); ++i)
            REQUIRE(failed[i] - failed[i - limit.failures] >= limit.window);
    }
}

TEST_CASE("a state is as good as untouched from recovered_at on, and not a second sooner",
          "[lockout][property]")
{
    reference::generator random(13);
    for (const auto& limit : reference::lockouts()) {
        lockout::state state;
        auto           at = new_year;
        for (int step = 0; step < 5'000; ++step) {
            at = reference::stepped(random, limit, at);
            limit.spend(state, 1, 1 + random() % 3, at);
            const auto then     = limit.recovered_at(state);
            const auto standing = [&](weir::instant when) {
                const auto seen = limit.look(state, when);
                return seen.failures == 0 && seen.level == 0;
            };
            REQUIRE(standing(then));
            REQUIRE_FALSE(standing(then - 1s));
        }
    }
}

TEST_CASE("the worse of two states leaves no more places than either", "[lockout][property]")
{
    reference::generator random(17);
    for (const auto& limit : reference::lockouts()) {
        for (int round = 0; round < 2'000 && limit.random_part == 0; ++round) {
            lockout::state one, other;
            auto           at = new_year;
            for (int step = 0; step < 12; ++step) {
                at += weir::duration(
                    reference::random_number<std::int64_t>(random, 0, limit.first.count() / 4));
                limit.spend(random() % 2 ? one : other, 1, 1 + random() % 4, at);
            }
            const auto worse = limit.worse(one, other);
            for (int look = 0; look < 6; ++look) {
                at += limit.first / 3;
                const auto left = limit.read(worse, 1, at).left;
                REQUIRE(left <= limit.read(one, 1, at).left);
                REQUIRE(left <= limit.read(other, 1, at).left);
            }
        }
    }
}
