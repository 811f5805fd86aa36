// SPDX-License-Identifier: BSL-1.0

// A quoted wait is exact in both directions: admitted at that instant, refused a tick before.

#include "weir/policy/fixed_window.hpp"
#include "weir/policy/gcra.hpp"
#include "weir/policy/sliding_window.hpp"

#include "catch.hpp"
#include "reference/one_client.hpp"
#include "reference/random.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>

using namespace std::chrono_literals;
using reference::chance;
using reference::random_number;
using reference::t;

namespace {

weir::duration some_window(reference::generator& random)
{
    constexpr std::array<weir::duration, 7> windows{1us, 1ms, 7ms, 1s, 1min, 1h, 24h};
    if (chance(random, 70)) return windows[random() % windows.size()];
    return std::chrono::microseconds(random_number<std::int64_t>(random, 1, 100'000'000));
}

std::uint64_t some_limit(reference::generator& random, std::uint64_t most)
{
    const auto limit = chance(random, 50) ? random_number<std::uint64_t>(random, 1, 20)
                                          : random() >> (random() % 64);
    return std::max<std::uint64_t>(1, std::min(limit, most));
}

template <class Policy>
Policy some_policy(reference::generator& random);

template <>
weir::fixed_window some_policy(reference::generator& random)
{
    return {.limit = some_limit(random, ~std::uint64_t{0}), .window = some_window(random)};
}

template <>
weir::sliding_window some_policy(reference::generator& random)
{
    const auto window = some_window(random);
    const auto most   = std::numeric_limits<std::int64_t>::max() / (window / 1us);
    return {.limit = some_limit(random, static_cast<std::uint64_t>(most)), .window = window};
}

template <>
weir::gcra some_policy(reference::generator& random)
{
    const auto       window = some_window(random);
    const weir::gcra rate{
        .limit = some_limit(random, std::uint64_t{1} << 40), .window = window, .burst = 1};
    const auto most = static_cast<std::uint64_t>((std::int64_t{1} << 61) / rate.interval.count());
    return {.limit = rate.limit, .window = window, .burst = some_limit(random, most)};
}

/// Random states of random limits, each asked until it refuses; counts the refusals that were tried
/// out. `tick` is how much earlier than quoted is refused.
template <class Policy>
std::uint64_t quoted_waits_hold(std::uint64_t seed, weir::duration tick)
{
    std::uint64_t tried = 0;
    for (const auto last = seed + reference::steps(1'000'000) / 10; seed < last; ++seed) {
        reference::generator   random(seed);
        const auto             limit = some_policy<Policy>(random);
        typename Policy::state state;
        auto                   at =
            t(0) + weir::duration(random_number<std::int64_t>(random, 0, 3 * limit.window.count()));
        for (int step = 0; step < 6; ++step) {
            const auto cost =
                chance(random, 50) ? 1 : random_number<std::uint64_t>(random, 1, limit.capacity());
            if (limit.spend(state, cost, 1, at) == 1) {
                at += weir::duration(random_number<std::int64_t>(random, 0, limit.window.count()));
                continue;
            }
            const auto told = limit.read(state, cost, at);
            INFO("seed " << seed << ", limit " << limit.limit << ", window " << limit.window.count()
                         << ", cost " << cost);
            REQUIRE(told.ever);
            REQUIRE(told.wait > 0ns);
            auto early = state, due = state;
            if (told.wait >= tick) REQUIRE(limit.spend(early, cost, 1, at + told.wait - tick) == 0);
            REQUIRE(limit.spend(early, cost, 1, at + told.wait - 1ns) == 0);
            REQUIRE(limit.spend(due, cost, 1, at + told.wait) == 1);
            ++tried;
            state = due, at += told.wait;
            // A burst may take 73 years to come back, and instants end in 2262.
            if (at > t(0) + 24h * 365 * 80) break;
        }
    }
    return tried;
}

}  // namespace

TEST_CASE("a client that fixed_window refuses is admitted exactly when retry_after has passed",
          "[retry_after]")
{
    CHECK(quoted_waits_hold<weir::fixed_window>(1'000'000, 1ns) > 10'000);
}

TEST_CASE("a client that sliding_window refuses is admitted exactly when retry_after has passed",
          "[retry_after]")
{
    CHECK(quoted_waits_hold<weir::sliding_window>(2'000'000, 1us) > 10'000);
}

TEST_CASE("a client that gcra refuses is admitted exactly when retry_after has passed",
          "[retry_after]")
{
    CHECK(quoted_waits_hold<weir::gcra>(3'000'000, 1ns) > 10'000);
}
