// SPDX-License-Identifier: BSL-1.0

#include "weir/reservation.hpp"

#include "catch.hpp"
#include "reference/one_client.hpp"
#include "reference/own_clock_store.hpp"

#include <chrono>
#include <cstdint>
#include <type_traits>
#include <utility>

using namespace std::chrono_literals;
using reference::one_client;
using reference::t;

namespace {

template <class Policy>
std::uint64_t left(one_client<Policy>& client, std::int64_t ms)
{
    return client.limiter.peek("client", {}, t(ms)).left;
}

}  // namespace

TEST_CASE("an estimate that was too high is put back when it is settled", "[reservation]")
{
    one_client client(weir::fixed_window{.limit = 20, .window = 1min});
    auto       spending = client.limiter.reserve("client", {.estimate = 10}, t(0));
    CHECK(spending);
    CHECK(spending.decision().left == 10);
    spending.settle(3, t(1'000));
    CHECK(left(client, 1'000) == 17);
}

TEST_CASE("an estimate that was too low is charged when it is settled, debt or not",
          "[reservation]")
{
    one_client client(weir::gcra{.limit = 20, .window = 20s});
    auto       spending = client.limiter.reserve("client", {.estimate = 10}, t(0));
    spending.settle(25, t(0));
    CHECK(left(client, 0) == 0);
    CHECK(client.admit(0).retry_after == 6s);
}

TEST_CASE("an estimate that is dropped stands", "[reservation]")
{
    one_client client(weir::sliding_window{.limit = 20, .window = 1min});
    {
        const auto dropped = client.limiter.reserve("client", {.estimate = 5}, t(0));
        CHECK(dropped);
    }
    CHECK(left(client, 0) == 15);
}

TEST_CASE("after the window has turned a surplus is charged now and a refund lapses",
          "[reservation]")
{
    one_client client(weir::fixed_window{.limit = 20, .window = 1min});
    auto       cheap = client.limiter.reserve("client", {.estimate = 10}, t(59'000));
    auto       dear  = client.limiter.reserve("client", {.estimate = 10}, t(59'000));
    cheap.settle(1, t(60'000));
    CHECK(left(client, 60'000) == 20);
    dear.settle(14, t(60'000));
    CHECK(left(client, 60'000) == 16);
}

TEST_CASE("a reservation is settled once, whoever holds it", "[reservation]")
{
    one_client client(weir::fixed_window{.limit = 20, .window = 1min});
    auto       first  = client.limiter.reserve("client", {.estimate = 10}, t(0));
    auto       second = std::move(first);
    first.settle(0, t(0));
    CHECK(left(client, 0) == 10);
    second.settle(4, t(0));
    second.settle(0, t(0));
    CHECK(left(client, 0) == 16);
    static_assert(!std::is_copy_constructible_v<decltype(first)>);
}

TEST_CASE("a refused reservation holds nothing and settles nothing", "[reservation]")
{
    one_client client(weir::fixed_window{.limit = 5, .window = 1min});
    CHECK(client.admit(0, 3));
    auto refused = client.limiter.reserve("client", {.estimate = 3}, t(0));
    CHECK(!refused);
    refused.settle(100, t(0));
    CHECK(left(client, 0) == 2);
}

TEST_CASE("a reservation that takes the place of another one leaves that estimate standing",
          "[reservation]")
{
    one_client client(weir::fixed_window{.limit = 20, .window = 1min});
    auto       held = client.limiter.reserve("client", {.estimate = 4}, t(0));
    held            = client.limiter.reserve("client", {.estimate = 6}, t(0));
    held.settle(0, t(0));
    CHECK(left(client, 0) == 16);
}

TEST_CASE("on a store's own clock a reservation is settled without an instant", "[reservation]")
{
    reference::own_clock_store counters(t(0));
    const weir::limiter limiter("ip", weir::fixed_window{.limit = 20, .window = 1min}, counters);
    auto                cheap = limiter.reserve("client", {.estimate = 10});
    auto                dear  = limiter.reserve("client", {.estimate = 5});
    CHECK(limiter.peek("client").left == 5);
    cheap.settle(4);
    CHECK(limiter.peek("client").left == 11);
    dear.settle(8);
    CHECK(limiter.peek("client").left == 8);

    auto late = limiter.reserve("client", {.estimate = 8});
    counters.advance(1min);
    late.settle(0);
    CHECK(limiter.peek("client").left == 20);
    CHECK(!limiter.reserve("client", {.estimate = 21}));
}
