// SPDX-License-Identifier: BSL-1.0

// What each policy promises over any schedule: random ones and those of an adversary.

#include "weir/limiter.hpp"
#include "weir/store/memory.hpp"

#include "catch.hpp"
#include "reference/one_client.hpp"
#include "reference/random.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using reference::chance;
using reference::most_in_any_span;
using reference::random_number;
using reference::t;

namespace {

/// The instants at which a client is admitted that asks at these, in order.
template <class Policy>
std::vector<weir::instant> admitted_of(const Policy& limit, const std::vector<weir::instant>& asks)
{
    typename Policy::state     state;
    std::vector<weir::instant> admitted;
    for (const auto at : asks)
        if (limit.spend(state, 1, 1, at) == 1) admitted.push_back(at);
    return admitted;
}

/// Bursts of random size at random instants, many of them next to edges of windows.
std::vector<weir::instant> random_asks(reference::generator& random, weir::duration window,
                                       std::uint64_t limit)
{
    std::vector<weir::instant> asks;
    auto                       at = t(0);
    while (asks.size() < 400) {
        const auto into = at.time_since_epoch() % window;
        if (chance(random, 30))
            at += window - into + weir::duration(random_number(random, -2000, 2000));
        else
            at += weir::duration(random_number<std::int64_t>(
                random, 0, window.count() / (chance(random, 50) ? 40 : 2)));
        if (!asks.empty()) at = std::max(at, asks.back());
        asks.insert(asks.end(), random_number<std::uint64_t>(random, 1, limit + 1), at);
    }
    return asks;
}

std::uint64_t most_in_any_window(const std::vector<weir::instant>& admitted, weir::duration window)
{
    std::map<std::int64_t, std::uint64_t> windows;
    std::uint64_t                         most = 0;
    for (const auto at : admitted) most = std::max(most, ++windows[weir::window_index(at, window)]);
    return most;
}

struct setting {
    std::uint64_t  limit;
    weir::duration window;
};

setting random_setting(reference::generator& random)
{
    constexpr weir::duration windows[] = {1ms, 10ms, 1s, 7s, 1min, 1h};
    return {random_number<std::uint64_t>(random, 1, 12), windows[random() % std::size(windows)]};
}

constexpr int schedules = 1'500;

/// The most that `gcra::at_most(limit, window, burst)` admits in a span of the window, when it is
/// asked for as much as it gives at the instants that the bits of `when` name.
std::uint64_t worst_of(const weir::gcra& limit, weir::duration window, std::uint64_t when,
                       int instants)
{
    std::vector<weir::instant> asks;
    for (int i = 0; i < instants; ++i)
        if (when >> i & 1) asks.insert(asks.end(), limit.burst + 1, t(0) + weir::duration(i));
    return most_in_any_span(admitted_of(limit, asks), window);
}

}  // namespace

TEST_CASE(
    "fixed_window admits at most the limit in a window, and twice the limit in a span is reached",
    "[bounds]")
{
    std::uint64_t twice = 0;
    for (int seed = 0; seed < schedules; ++seed) {
        reference::generator random(static_cast<std::uint64_t>(seed));
        const auto [limit, window] = random_setting(random);
        const auto admitted = admitted_of(weir::fixed_window{.limit = limit, .window = window},
                                          random_asks(random, window, limit));
        REQUIRE(most_in_any_window(admitted, window) <= limit);
        REQUIRE(most_in_any_span(admitted, window) <= 2 * limit);
        twice += most_in_any_span(admitted, window) == 2 * limit;
    }
    CHECK(twice > 0);
}

TEST_CASE("sliding_window admits at most 2L-1 in a span, and L in a window, and both are reached",
          "[bounds]")
{
    std::uint64_t worst = 0, full = 0;
    for (int seed = 0; seed < schedules; ++seed) {
        reference::generator random(static_cast<std::uint64_t>(seed));
        const auto [limit, window] = random_setting(random);
        const auto admitted = admitted_of(weir::sliding_window{.limit = limit, .window = window},
                                          random_asks(random, window, limit));
        REQUIRE(most_in_any_window(admitted, window) <= limit);
        REQUIRE(most_in_any_span(admitted, window) <= 2 * limit - 1);
        worst += most_in_any_span(admitted, window) == 2 * limit - 1;
        full += most_in_any_window(admitted, window) == limit;
    }
    CHECK(worst > 0);
    CHECK(full > 0);
}

TEST_CASE("O24: an adversary reaches 2L-1 of sliding_window at every limit, and never more",
          "[bounds]")
{
    for (std::uint64_t limit = 1; limit <= 200; ++limit) {
        std::vector<weir::instant> asks(limit, t(1'000) - 1us);
        for (std::int64_t us = 0; us < 1'000'000; us += 500)
            asks.insert(asks.end(), 2, t(1'000) + 1us * us);
        asks.insert(asks.end(), 3, t(2'000) - 2us);
        const auto admitted = admitted_of(weir::sliding_window{.limit = limit, .window = 1s}, asks);
        REQUIRE(most_in_any_span(admitted, 1s) == 2 * limit - 1);
    }
}

TEST_CASE("gcra admits at most burst + D/T in any span D", "[bounds]")
{
    for (int seed = 0; seed < schedules; ++seed) {
        reference::generator random(static_cast<std::uint64_t>(seed));
        const auto [limit, window] = random_setting(random);
        const weir::gcra bucket{
            .limit = limit, .window = window, .burst = random_number<std::uint64_t>(random, 1, 9)};
        const auto admitted = admitted_of(bucket, random_asks(random, window, bucket.burst));
        for (std::size_t first = 0; first < admitted.size(); ++first)
            for (std::size_t last = first; last < admitted.size(); ++last) {
                const auto span = admitted[last] - admitted[first];
                REQUIRE(last - first + 1 <=
                        bucket.burst + static_cast<std::uint64_t>(span / bucket.interval));
            }
    }
}

TEST_CASE("gcra::at_most is never over L in any half-open span of W, and always reaches it, for "
          "all L to 12",
          "[bounds]")
{
    for (std::uint64_t limit = 1; limit <= 12; ++limit)
        for (std::uint64_t burst = 1; burst <= limit; ++burst)
            for (std::int64_t length = 1; length <= 60; ++length) {
                const weir::duration window(length);
                const auto           bucket = weir::gcra::at_most(limit, window, {.burst = burst});
                std::uint64_t        most   = 0;
                // As greedy as can be, with a pause of every length after the first burst.
                for (std::int64_t pause = 0; pause <= length; ++pause) {
                    std::vector<weir::instant> asks(burst + 1, t(0));
                    for (std::int64_t i = pause; i <= 3 * length; ++i)
                        asks.insert(asks.end(), burst + 1, t(0) + weir::duration(i));
                    most = std::max(most, most_in_any_span(admitted_of(bucket, asks), window));
                }
                REQUIRE(most <= limit);
                // A window of fewer nanoseconds than units cannot tell them apart.
                if (length % static_cast<std::int64_t>(bucket.limit) == 0) REQUIRE(most == limit);
            }
}

TEST_CASE("gcra::at_most holds for every subset of the instants of two windows", "[bounds]")
{
    for (std::uint64_t limit = 1; limit <= 6; ++limit)
        for (std::uint64_t burst = 1; burst <= limit; ++burst)
            for (int length = 1; length <= 6; ++length) {
                const weir::duration window(length);
                const auto           bucket = weir::gcra::at_most(limit, window, {.burst = burst});
                for (std::uint64_t when = 0; when < std::uint64_t{1} << 2 * length; ++when)
                    REQUIRE(worst_of(bucket, window, when, 2 * length) <= limit);
            }
}

TEST_CASE("the same harness finds fixed_window at 120 and the burst of gcra at 119 of 60",
          "[bounds]")
{
    std::vector<weir::instant> asks;
    for (std::int64_t ms = 59'000; ms < 180'000; ms += 10) asks.insert(asks.end(), 70, t(ms));
    CHECK(most_in_any_span(admitted_of(weir::fixed_window{.limit = 60, .window = 1min}, asks),
                           1min) == 120);
    CHECK(most_in_any_span(admitted_of(weir::gcra{.limit = 60, .window = 1min}, asks), 1min) ==
          119);
    CHECK(most_in_any_span(admitted_of(weir::gcra::at_most(60, 1min, {.burst = 30}), asks), 1min) ==
          60);
}
