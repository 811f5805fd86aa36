// SPDX-License-Identifier: BSL-1.0

#include "weir/policy/sliding_window.hpp"

#include "catch.hpp"
#include "reference/one_client.hpp"

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using reference::one_client;
using reference::t;
using weir::sliding_window;

TEST_CASE(
    "O23: 10 at the end of a window leave none at the start of the next, and one at a tenth of it",
    "[sliding_window]")
{
    one_client client(sliding_window{.limit = 10, .window = 1min});
    CHECK(client.admitted(11, 59'000) == 10);
    CHECK(client.admitted(10, 60'000) == 0);
    CHECK(client.admit(60'000).retry_after == 6s);
    CHECK(!client.admit(65'999));
    CHECK(client.admit(66'000));
}

TEST_CASE("O24, P18: the worst trailing window holds 199 of 100, and no aligned one over 100",
          "[sliding_window]")
{
    one_client                 client(sliding_window{.limit = 100, .window = 1s});
    std::vector<weir::instant> admitted;
    for (int i = 0; i < 100; ++i)
        if (client.admit(999)) admitted.push_back(t(999));
    for (std::int64_t ms = 1'000; ms < 4'000; ++ms)
        for (int i = 0; i < 3; ++i)
            if (client.admit(ms)) admitted.push_back(t(ms));
    CHECK(reference::most_in_any_span(admitted, 1s) == 199);
    for (std::int64_t start = 0; start < 4'000; start += 1'000) {
        const auto inside = [&](weir::instant at) {
            return at >= t(start) && at < t(start + 1'000);
        };
        CHECK(std::count_if(admitted.begin(), admitted.end(), inside) <= 100);
    }
}

TEST_CASE("P16, P17: 600 pass at once, then one each tenth of a second", "[sliding_window]")
{
    one_client client(sliding_window{.limit = 600, .window = 1min});
    CHECK(client.admitted(601, 0) == 600);
    CHECK(!client.admit(60'000));
    CHECK(client.admit(60'100));
    int admitted = 1;
    for (std::int64_t ms = 60'101; ms < 120'000; ++ms) admitted += bool(client.admit(ms));
    CHECK(admitted == 599);
}

TEST_CASE("P19: 42 before and 18 now, a quarter in: 49.5 of 50, so one more does not fit",
          "[sliding_window]")
{
    constexpr sliding_window limit{.limit = 50, .window = 1min};
    sliding_window::state    state{t(60'000), 18, 42};
    CHECK(limit.spend(state, 1, 1, t(75'000)) == 0);
    CHECK(limit.read(state, 1, t(75'000)).left == 0);
}

TEST_CASE("P20: at one in 10 s a client paced by 10 s is let through every other time",
          "[sliding_window]")
{
    one_client client(sliding_window{.limit = 1, .window = 10s});
    for (int i = 0; i < 10; ++i) CHECK(bool(client.admit(i * 10'000)) == (i % 2 == 0));
}

TEST_CASE("P21: refused asks are not counted", "[sliding_window]")
{
    one_client client(sliding_window{.limit = 5, .window = 1min});
    CHECK(client.admitted(30, 0) == 5);
    CHECK(client.admit(60'000).retry_after == 12s);
}

TEST_CASE("P22: a flood has the limit first and one less in each window after it",
          "[sliding_window]")
{
    one_client client(sliding_window{.limit = 10, .window = 10s});
    for (int window = 0; window < 4; ++window) {
        int admitted = 0;
        for (int i = 0; i < 1'000; ++i) admitted += bool(client.admit(window * 10'000 + i * 10));
        CHECK(admitted == (window == 0 ? 10 : 9));
    }
}

TEST_CASE("P24: three in half a second admits three of ten at once", "[sliding_window]")
{
    one_client client(sliding_window{.limit = 3, .window = 500ms});
    CHECK(client.admitted(10, 0) == 3);
}

TEST_CASE("P25: windows lie on the grid: five at 0 leave room at 19.9 s", "[sliding_window]")
{
    one_client client(sliding_window{.limit = 5, .window = 10s});
    CHECK(client.admitted(5, 0) == 5);
    CHECK(client.admit(19'900));
}

TEST_CASE("section 2.7: the quoted wait is the exact one", "[sliding_window]")
{
    struct row {
        std::uint64_t  previous, current;
        weir::duration elapsed, window;
        std::uint64_t  limit;
        weir::duration wait;
    };
    const std::vector<row> rows{
        {0, 600, 500ms, 60s, 600, 59'600ms}, {600, 0, 0s, 60s, 600, 100ms},
        {600, 300, 30s, 60s, 600, 100ms},    {600, 300, 15s, 60s, 600, 15'100ms},
        {42, 18, 15s, 60s, 50, 714'286us},   {0, 1, 5s, 10s, 1, 15s}};
    for (const auto& row : rows) {
        const sliding_window  limit{.limit = row.limit, .window = row.window};
        sliding_window::state state{t(0), row.current, row.previous};
        const auto            at   = t(0) + row.elapsed;
        const auto            told = limit.read(state, 1, at);
        CHECK(!told.fits);
        CHECK(told.wait == row.wait);
        CHECK(!limit.read(state, 1, at + told.wait - 1ns).fits);
        CHECK(limit.read(state, 1, at + told.wait).fits);
    }
}

TEST_CASE("time finer than a microsecond is rounded against the client", "[sliding_window]")
{
    constexpr sliding_window limit{.limit = 2, .window = 2us};
    sliding_window::state    state{t(0), 0, 2};
    CHECK(!limit.read(state, 1, t(0) + 999ns).fits);
    CHECK(limit.read(state, 1, t(0) + 1us).fits);
}

TEST_CASE("a key that sits out a step back is judged at the start of its window",
          "[sliding_window]")
{
    constexpr sliding_window limit{.limit = 10, .window = 1min};
    sliding_window::state    state{t(60'000), 2, 6};
    CHECK(limit.judged_at(state, t(59'000)) == t(60'000));
    CHECK(limit.read(state, 3, t(59'000)).wait == 11s);
    CHECK(limit.read(state, 3, t(-3'540'000)).left == 2);
    CHECK(limit.read(state, 3, t(-3'540'001)).left == 10);
}

TEST_CASE("a key to which all was given back does not hold an earlier ask to its window",
          "[sliding_window]")
{
    constexpr sliding_window limit{.limit = 1, .window = 1s};
    sliding_window::state    state;
    CHECK(limit.spend(state, 1, 1, t(1'500)) == 1);
    limit.give_back(state, 1, t(2'000), t(1'600));
    CHECK(limit.judged_at(state, t(900)) == t(900));
    CHECK(limit.spend(state, 1, 1, t(900)) == 1);
    CHECK(state.start == t(0));
}

TEST_CASE("a debt reaches into the next window and no further", "[sliding_window]")
{
    constexpr sliding_window limit{.limit = 10, .window = 1s};
    sliding_window::state    state;
    limit.charge(state, 40, t(0));
    CHECK(!limit.read(state, 1, t(1'774)).fits);
    CHECK(limit.read(state, 1, t(1'775)).fits);
    CHECK(limit.read(state, 10, t(2'000)).fits);
    limit.charge(state, std::numeric_limits<std::uint64_t>::max(), t(0));
    CHECK(state.current == std::numeric_limits<std::uint64_t>::max());
    CHECK(limit.read(state, 1, t(500)).left == 0);
    CHECK(limit.read(state, 1, t(1'999)).left == 0);
}

TEST_CASE("a window of broken microseconds and a product over 2^63 are named in the complaint",
          "[sliding_window]")
{
    CHECK(sliding_window{.limit = 1, .window = 1us}.complaint().empty());
    CHECK(sliding_window{.limit = 1, .window = 1500ns}.complaint().find("microseconds") !=
          std::string::npos);
    CHECK(!sliding_window{.limit = 1, .window = 0s}.complaint().empty());
    constexpr auto most = std::uint64_t{std::numeric_limits<std::int64_t>::max()} / 1'000'000;
    CHECK(sliding_window{.limit = most, .window = 1s}.complaint().empty());
    CHECK(sliding_window{.limit = most + 1, .window = 1s}.complaint().find(std::to_string(most)) !=
          std::string::npos);
}

TEST_CASE("the worse of two states of a sliding_window leaves no more than either",
          "[sliding_window]")
{
    constexpr sliding_window                 limit{.limit = 20, .window = 1s};
    const std::vector<sliding_window::state> states{{},
                                                    {t(0), 3, 9},
                                                    {t(0), 7, 1},
                                                    {t(1'000), 2, 3},
                                                    {t(1'000), 1, 0},
                                                    {t(2'000), 9, 0},
                                                    {t(5'000), 1, 1}};
    for (const auto& a : states)
        for (const auto& b : states)
            for (const auto at : {t(500), t(1'500), t(2'500), t(5'500)}) {
                const auto left = [&](const auto& s) { return limit.read(s, 1, at).left; };
                if (at < std::max(a.start, b.start)) continue;
                CHECK(left(limit.worse(a, b)) <= std::min(left(a), left(b)));
            }
}
