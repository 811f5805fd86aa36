// SPDX-License-Identifier: BSL-1.0

#include "weir/policy/fixed_window.hpp"

#include "catch.hpp"
#include "reference/one_client.hpp"

#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

using namespace std::chrono_literals;
using reference::one_client;
using reference::t;
using weir::fixed_window;

namespace {

constexpr auto most = ~std::uint64_t{0};

/// 12:00:00 of the day, in milliseconds.
constexpr std::int64_t noon = 43'200'000;

}  // namespace

TEST_CASE("F22: the limit itself is admitted and the next one is not", "[fixed_window]")
{
    one_client client(fixed_window{.limit = 60, .window = 1min});
    CHECK(client.admitted(60, noon) == 60);
    CHECK(!client.admit(noon));
}

TEST_CASE("F23: a refusal quotes the rest of the window", "[fixed_window]")
{
    one_client client(fixed_window{.limit = 60, .window = 1min});
    for (int i = 0; i < 60; ++i) REQUIRE(client.admit(noon + i * 500));
    CHECK(client.admit(noon + 30'000).retry_after == 30s);
    CHECK(client.admit(noon + 59'000).retry_after == 1s);
}

TEST_CASE("F24: the last instant of a window is in it and the next one is not", "[fixed_window]")
{
    one_client client(fixed_window{.limit = 1, .window = 1min});
    CHECK(client.admit(noon));
    CHECK(!client.limiter.admit("client", t(noon + 60'000) - 1ns));
    CHECK(client.admit(noon + 60'000));
}

TEST_CASE(
    "F26: twice the limit fits around an edge of windows, and then the wait is the window's rest",
    "[fixed_window]")
{
    one_client client(fixed_window{.limit = 60, .window = 1min});
    int        admitted = 0;
    for (int i = 0; i < 60; ++i) admitted += bool(client.admit(noon + 59'000 + i * 15));
    for (int i = 0; i < 60; ++i) admitted += bool(client.admit(noon + 60'000 + i * 15));
    CHECK(admitted == 120);
    CHECK(client.admit(noon + 61'000).retry_after == 59s);
}

TEST_CASE("O23: 10 at the end of a window and 10 at the start of the next are 20", "[fixed_window]")
{
    one_client client(fixed_window{.limit = 10, .window = 1min});
    CHECK(client.admitted(11, 59'000) == 10);
    CHECK(client.admitted(11, 60'000) == 10);
}

TEST_CASE("O28: five spent, the sixth at 2 s of a minute is told 58 s", "[fixed_window]")
{
    one_client client(fixed_window{.limit = 5, .window = 1min});
    CHECK(client.admitted(5, 0) == 5);
    CHECK(client.admit(2'000).retry_after == 58s);
}

TEST_CASE("O29: no wait is longer than the window, at any instant of it", "[fixed_window]")
{
    constexpr fixed_window limit{.limit = 1, .window = 1min};
    for (std::int64_t ms = 0; ms < 180'000; ms += 7) {
        fixed_window::state state;
        limit.spend(state, 1, 1, t(ms));
        const auto told = limit.read(state, 1, t(ms));
        REQUIRE(told.wait > 0s);
        REQUIRE(told.wait <= 60s);
        REQUIRE(told.wait == 60s - 1ms * (ms % 60'000));
    }
}

TEST_CASE("O30: the wait is the rest of the period and not all of it", "[fixed_window]")
{
    one_client early(fixed_window{.limit = 1, .window = 1h});
    CHECK(early.admit(1));
    CHECK(early.admit(1).retry_after == 3'599'999ms);
    one_client late(fixed_window{.limit = 1, .window = 1h});
    CHECK(late.admit(3'599'000));
    CHECK(late.admit(3'599'000).retry_after == 1s);
}

TEST_CASE("O20: a count at the top of its type saturates and still refuses", "[fixed_window]")
{
    for (const auto stored : {std::uint64_t{0xffff'ffff}, std::uint64_t{1} << 63, most}) {
        one_client client(fixed_window{.limit = 5, .window = 1h});
        client.limiter.charge("client", {stored}, t(0));
        CHECK(!client.admit(1));
        client.limiter.charge("client", {stored}, t(2));
        CHECK(!client.admit(3));
        CHECK(client.admit(3'600'000));
    }
    constexpr fixed_window limit{.limit = most, .window = 1h};
    fixed_window::state    state{t(0), most};
    CHECK(limit.spend(state, 1, 1, t(0)) == 0);
    CHECK(state.used == most);
}

TEST_CASE("O20: a window as long as the type holds neither wraps nor ends early", "[fixed_window]")
{
    constexpr fixed_window forever{.limit = 2, .window = weir::duration::max()};
    one_client             client(forever);
    CHECK(client.admitted(3, 0) == 2);
    CHECK(!client.limiter.admit("client", weir::instant::max() - 1ns));
    const auto told = client.admit(0);
    CHECK(told.retry_after == weir::instant::max() - t(0));
}

TEST_CASE("B26: three in a minute are let through and the fourth is not", "[fixed_window]")
{
    one_client client(fixed_window{.limit = 3, .window = 1min});
    CHECK(client.admitted(4, 0) == 3);
}

TEST_CASE("B27: a limit of 0 refuses, since no limit is the absence of the rule", "[fixed_window]")
{
    one_client client(fixed_window{.limit = 0, .window = 1s});
    const auto told = client.admit(0);
    CHECK(!told);
    CHECK(told.left == 0);
    CHECK(told.retry_after == std::nullopt);
}

TEST_CASE("O34: units given back after the window has turned do not make the new one richer",
          "[fixed_window]")
{
    one_client client(fixed_window{.limit = 2, .window = 1min});
    const auto first = client.admit(59'000);
    client.limiter.give_back("client", first, t(61'000));
    CHECK(client.admitted(3, 61'000) == 2);
    client.limiter.give_back("client", first, t(62'000));
    CHECK(!client.admit(62'000));
}

TEST_CASE("units are given back to the window that they were taken from", "[fixed_window]")
{
    one_client client(fixed_window{.limit = 2, .window = 1min});
    const auto made = client.admit(1'000, 2);
    CHECK(!client.admit(2'000));
    client.limiter.give_back("client", made, t(59'999));
    CHECK(client.limiter.peek("client", {}, t(59'999)).left == 2);
    client.limiter.give_back("client", made, t(59'999));
    CHECK(client.limiter.peek("client", {}, t(59'999)).left == 2);
}

TEST_CASE(
    "a small step back is judged in the window that is open, a step of over an hour is believed",
    "[fixed_window]")
{
    constexpr fixed_window limit{.limit = 2, .window = 1min};
    fixed_window::state    state;
    CHECK(limit.spend(state, 1, 2, t(3'600'000)) == 2);
    CHECK(limit.spend(state, 1, 1, t(3'599'999)) == 0);
    CHECK(limit.judged_at(state, t(3'599'999)) == t(3'600'000));
    CHECK(limit.read(state, 1, t(3'599'000)).wait == 61s);
    CHECK(limit.spend(state, 1, 1, t(0)) == 0);
    auto believed = state;
    CHECK(limit.spend(believed, 1, 1, t(-1)) == 1);
    CHECK(believed.start == t(-60'000));
}

TEST_CASE("the worse of two states of a fixed_window leaves no more than either", "[fixed_window]")
{
    constexpr fixed_window                 limit{.limit = 10, .window = 1s};
    const std::vector<fixed_window::state> states{
        {}, {t(0), 3}, {t(0), 7}, {t(1'000), 2}, {t(2'000), 9}};
    for (const auto& a : states)
        for (const auto& b : states)
            for (const auto at : {t(0), t(1'500), t(2'500)}) {
                const auto left = [&](const auto& s) { return limit.read(s, 1, at).left; };
                if (at < std::max(a.start, b.start)) continue;
                CHECK(left(limit.worse(a, b)) <= std::min(left(a), left(b)));
            }
}

TEST_CASE("a window that is not positive is named in the complaint", "[fixed_window]")
{
    CHECK(fixed_window{.limit = 1, .window = 1ns}.complaint().empty());
    CHECK(fixed_window{.limit = 1, .window = 0s}.complaint().find("window") != std::string::npos);
    CHECK(!fixed_window{.limit = 1, .window = -1s}.complaint().empty());
}
