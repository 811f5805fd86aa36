// SPDX-License-Identifier: BSL-1.0

// Numbers at the ends of their types: nothing wraps, and no limit is passed.

#include "weir/limiter.hpp"
#include "weir/store/memory.hpp"

#include "catch.hpp"
#include "reference/one_client.hpp"
#include "reference/oracle.hpp"

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

using namespace std::chrono_literals;
using reference::t;

namespace {

constexpr auto most = std::numeric_limits<std::uint64_t>::max();

const std::vector<std::uint64_t> limits{0,
                                        1,
                                        2,
                                        0x7fff'ffff,
                                        std::uint64_t{1} << 32,
                                        (std::uint64_t{1} << 33) - 1,
                                        std::uint64_t{std::numeric_limits<std::int64_t>::max()},
                                        most};

const std::vector<weir::duration> windows{
    1us, 1ms,       1s,
    1h,  24h * 365, std::chrono::floor<std::chrono::microseconds>(weir::duration::max())};

std::vector<weir::instant> instants()
{
    std::vector<weir::instant> all;
    for (const auto edge : {weir::instant::min(), weir::instant(0ns), t(0), weir::instant::max()})
        for (const auto away : {-2h, -1h, 0h, 1h, 2h})
            for (const auto by : {-1ns, 0ns, 1ns})
                all.push_back(weir::saturating_add(edge, away + by));
    return all;
}

std::vector<std::uint64_t> costs(std::uint64_t limit)
{
    return {0, 1, limit / 2, limit - 1, limit, limit + 1, most};
}

/// All orders of two asks, at all edges: a limit is never passed in an instant, and asks for more
/// than there can be are refused without a wait.
template <class Policy>
void hold(const Policy& limit)
{
    if (!limit.complaint().empty()) return;
    const auto capacity = limit.capacity();
    for (const auto at : instants())
        for (const auto first : costs(capacity))
            for (const auto second : costs(capacity)) {
                typename Policy::state state;
                std::uint64_t          taken = 0;
                for (const auto cost : {first, second, std::uint64_t{1}}) {
                    if (cost == 0) continue;
                    const auto before = state;
                    const auto room   = limit.read(state, cost, at);
                    REQUIRE(room.left <= capacity);
                    REQUIRE(room.ever == (cost <= capacity));
                    if (limit.spend(state, cost, 1, at) == 1) {
                        REQUIRE(room.fits);
                        taken += cost;
                        REQUIRE(taken <= capacity);
                        REQUIRE(taken >= cost);
                    } else {
                        REQUIRE(!room.fits);
                        REQUIRE(state == before);
                        if (room.ever && at < weir::instant::max()) REQUIRE(room.wait > 0ns);
                    }
                    REQUIRE(limit.read(state, 1, at).reset_after >= 0ns);
                    REQUIRE(limit.judged_at(state, at) >= at);
                }
            }
}

template <class Policy>
void hold_for_all()
{
    for (const auto limit : limits)
        for (const auto window : windows) {
            INFO("limit " << limit << ", window " << window.count());
            hold(Policy{.limit = limit, .window = window});
        }
}

}  // namespace

TEST_CASE("fixed_window passes no limit at the ends of instants, limits, windows and costs",
          "[edges]")
{
    hold_for_all<weir::fixed_window>();
}

TEST_CASE("sliding_window passes no limit at the ends of instants, limits, windows and costs",
          "[edges]")
{
    hold_for_all<weir::sliding_window>();
}

TEST_CASE("gcra passes no limit at the ends of instants, limits, windows and costs", "[edges]")
{
    hold_for_all<weir::gcra>();
}

TEST_CASE("a memory store counts the largest limits to the last unit", "[edges]")
{
    const auto check = [](const auto& limit) {
        weir::memory_store  counters({.max_keys = 10});
        const weir::limiter limiter("edge", limit, counters);
        const auto          capacity = limit.capacity();
        CHECK(limiter.admit("client", {.cost = capacity - 1}, t(0)).left == 1);
        CHECK(!limiter.admit("client", {.cost = 2}, t(0)));
        CHECK(limiter.admit("client", t(0)).left == 0);
        CHECK(!limiter.admit("client", t(0)));
        const auto over = limiter.admit("client", {.cost = most}, t(0));
        CHECK(!over);
        if (capacity < most) CHECK(over.retry_after == std::nullopt);
    };
    for (const auto limit : limits) {
        if (limit < 2) continue;
        check(weir::fixed_window{.limit = limit, .window = 1s});
        if (limit < std::uint64_t{1} << 33)
            check(weir::sliding_window{.limit = limit, .window = 1s});
        if (limit <= 0xffff'ffff) check(weir::gcra{.limit = limit, .window = 1s});
    }
}

TEST_CASE("windows around the epoch and long before it are judged by the definitions", "[edges]")
{
    const auto check = [](const auto& limit) {
        using policy = std::remove_cvref_t<decltype(limit)>;
        for (const auto base : {weir::instant(0ns), weir::instant(-24h * 365 * 200),
                                weir::instant(24h * 365 * 200)}) {
            typename policy::state    state;
            reference::oracle<policy> due(limit);
            for (int i = 0; i < 400; ++i) {
                const auto at   = base + 370ms * (i - 200);
                const auto told = due.spend(1, at.time_since_epoch().count());
                REQUIRE((limit.spend(state, 1, 1, at) == 1) == told.admitted);
                REQUIRE(limit.read(state, 1, at).left == told.left);
                REQUIRE(limit.read(state, 1, at).reset_after.count() == told.reset_after);
            }
        }
    };
    check(weir::fixed_window{.limit = 5, .window = 3s});
    check(weir::sliding_window{.limit = 5, .window = 3s});
    check(weir::gcra{.limit = 5, .window = 3s});
}

TEST_CASE("what is charged, given back and charged again at the ends of the types never wraps",
          "[edges]")
{
    const auto check = [](const auto& limit) {
        for (const auto at : instants()) {
            typename std::remove_cvref_t<decltype(limit)>::state state;
            limit.charge(state, most, at);
            CHECK(limit.read(state, 1, at).left == 0);
            limit.charge(state, most, at);
            CHECK(limit.read(state, 1, at).left == 0);
            limit.give_back(state, 1, weir::instant::max(), at);
            limit.give_back(state, most, weir::instant::min(), at);
            CHECK(limit.read(state, 1, at).left <= limit.capacity());
        }
    };
    check(weir::fixed_window{.limit = 5, .window = 1h});
    check(weir::sliding_window{.limit = 5, .window = 1h});
}
