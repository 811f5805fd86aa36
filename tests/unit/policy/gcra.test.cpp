// SPDX-License-Identifier: BSL-1.0

#include "weir/policy/gcra.hpp"

#include "catch.hpp"
#include "reference/one_client.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using reference::one_client;
using reference::t;
using weir::gcra;

TEST_CASE("B1–B5: one a second with a burst of five, as a client sees it", "[gcra]")
{
    one_client client(gcra{.limit = 1, .window = 1s, .burst = 5});
    const auto never = client.admit(0, 6);
    CHECK(!never);
    CHECK(never.retry_after == std::nullopt);
    CHECK(never.left == 5);

    for (std::uint64_t left = 5; left-- > 0;) {
        const auto told = client.admit(0);
        CHECK(told);
        CHECK(told.left == left);
        CHECK(told.reset_after == std::chrono::seconds(5 - left));
    }
    const auto sixth = client.admit(0);
    CHECK(!sixth);
    CHECK(sixth.retry_after == 1s);
    CHECK(sixth.reset_after == 5s);

    struct row {
        std::int64_t   at;
        std::uint64_t  left;
        weir::duration reset;
    };
    for (const auto& [at, left, reset] :
         {row{3'000, 2, 3s}, row{3'100, 1, 3'900ms}, row{4'000, 1, 4s}, row{8'000, 4, 1s},
          row{9'500, 4, 1s}}) {
        const auto told = client.admit(at);
        CHECK(told);
        CHECK(told.left == left);
        CHECK(told.reset_after == reset);
    }
}

TEST_CASE("B8: ten a second with a burst of one", "[gcra]")
{
    one_client client(gcra{.limit = 10, .window = 1s, .burst = 1});
    CHECK(client.admitted(3, 0) == 1);
    CHECK(client.admitted(3, 100) == 1);
    CHECK(!client.admit(200, 2));
    CHECK(client.admitted(2, 200) == 1);
}

TEST_CASE("B9: ten a second with a burst of three, by costs", "[gcra]")
{
    one_client client(gcra{.limit = 10, .window = 1s, .burst = 3});
    CHECK(client.admit(0, 2));
    CHECK(!client.admit(0, 2));
    CHECK(client.admit(0, 1));
    CHECK(!client.admit(0, 1));
    CHECK(!client.admit(100, 4));
    CHECK(client.admit(200, 1));
    CHECK(client.admit(300, 1));
    CHECK(client.admitted(4, 400) == 2);
    CHECK(client.admit(900, 3));
    // A cost of 0 looks whether one unit would fit, so here we say no where the source says yes.
    CHECK(!client.admit(900, 0));
    CHECK(client.admit(1'000, 0));
}

TEST_CASE("B12, O18: five a second give five again after a long idle, and no more", "[gcra]")
{
    one_client client(gcra{.limit = 5, .window = 1s});
    CHECK(client.admitted(6, 0) == 5);
    CHECK(client.admitted(6, 2'000) == 5);
}

TEST_CASE("B13: two a second at the grain of a millisecond", "[gcra]")
{
    one_client client(gcra{.limit = 2, .window = 1s});
    CHECK(client.admit(0));
    CHECK(client.admit(1));
    CHECK(!client.admit(2));
    CHECK(client.admit(1'002));
    CHECK(client.admit(1'003));
    CHECK(!client.admit(1'004));
}

TEST_CASE("B14: costs over the burst never fit, not after any wait, and take nothing", "[gcra]")
{
    one_client client(gcra{.limit = 5, .window = 1s});
    for (const std::int64_t at : {0, 20'000})
        for (const auto cost : {std::uint64_t{15}, std::uint64_t{7}, std::uint64_t{6}}) {
            const auto told = client.admit(at, cost);
            CHECK(!told);
            CHECK(told.retry_after == std::nullopt);
        }
    CHECK(client.admit(20'000, 5));
}

TEST_CASE("B19: two a second with one more at once: two, then one half a second later", "[gcra]")
{
    one_client client(gcra{.limit = 2, .window = 1s, .burst = 2});
    CHECK(client.admitted(3, 0) == 2);
    CHECK(client.admit(500));
    CHECK(!client.admit(500));
}

TEST_CASE("B20: credit is not saved up beyond the burst", "[gcra]")
{
    one_client client(gcra{.limit = 1'000, .window = 1s, .burst = 1});
    CHECK(client.admit(0));
    CHECK(client.admitted(2, 100) == 1);
}

TEST_CASE(
    "B22: thirty a minute with two more at once: the third is admitted at once, the fourth is not",
    "[gcra]")
{
    one_client client(gcra{.limit = 30, .window = 1min, .burst = 3});
    CHECK(client.admitted(4, 0) == 3);
    CHECK(client.admit(0).retry_after == 2s);
}

TEST_CASE("B28: twice the rate for two seconds is let through as burst and rate allow, 300",
          "[gcra]")
{
    one_client client(gcra{.limit = 100, .window = 1s});
    int        admitted = 0;
    for (std::int64_t ms = 0; ms < 2'000; ms += 5) admitted += bool(client.admit(ms));
    CHECK(admitted <= 300);
    CHECK(admitted >= 299);
}

TEST_CASE("O16: a clock that steps back mints nothing and locks nobody out for longer", "[gcra]")
{
    one_client client(gcra{.limit = 10, .window = 10s, .burst = 10});
    CHECK(client.admitted(3, 20'000) == 3);
    const auto told = client.admit(9'000);
    CHECK(!told);
    CHECK(told.retry_after == 5s);
    CHECK(!client.admit(13'999));
    CHECK(client.admit(14'000));
    CHECK(!client.admit(14'000));
}

TEST_CASE("a TAT that lies an hour beyond the burst is believed, one nanosecond more is not",
          "[gcra]")
{
    constexpr gcra limit{.limit = 10, .window = 10s};
    gcra::state    state{t(0) + 10s + 1h};
    CHECK(!limit.read(state, 1, t(0)).fits);
    CHECK(limit.read(state, 10, t(0) - 1ns).fits);
}

TEST_CASE("O17: no fraction of a unit is lost between asks", "[gcra]")
{
    one_client slow(gcra{.limit = 10, .window = 1s, .burst = 1});
    int        admitted = 0;
    for (int i = 0; i <= 100; ++i) {
        const bool yes = bool(slow.admit(i * 95));
        CHECK(yes == (i % 2 == 0));
        admitted += yes;
    }
    CHECK(admitted == 51);

    one_client busy(gcra{.limit = 10, .window = 1s, .burst = 1});
    admitted = 0;
    for (std::int64_t ms = 0; ms < 10'000; ++ms) admitted += bool(busy.admit(ms));
    CHECK(admitted == 100);
}

TEST_CASE("O19: a cost whose product would overflow never fits and changes nothing", "[gcra]")
{
    one_client client(gcra{.limit = 1, .window = 24h});
    for (const auto cost :
         {std::uint64_t{200'000'000}, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
        const auto told = client.admit(0, cost);
        CHECK(!told);
        CHECK(told.retry_after == std::nullopt);
        CHECK(told.left == 1);
    }
    CHECK(client.admit(0));
}

TEST_CASE("O25: at most one in any second forgets the one that is a second old", "[gcra]")
{
    one_client client(gcra::at_most(1, 1s));
    CHECK(client.admit(0));
    CHECK(client.admit(1'000));
    CHECK(!client.admit(1'999));
    CHECK(client.admit(2'000));
}

TEST_CASE("five in 24 h without a burst are five at once", "[gcra]")
{
    one_client client(gcra{.limit = 5, .window = 24h});
    CHECK(client.admitted(6, 0) == 5);
    CHECK(client.admit(0).retry_after == weir::duration(24h) / 5);
}

TEST_CASE("the interval is rounded up, against the client", "[gcra]")
{
    CHECK(gcra{.limit = 3, .window = 10ns}.interval == 4ns);
    CHECK(gcra{.limit = 10, .window = 10ns}.interval == 1ns);
    CHECK(gcra{.limit = 11, .window = 10ns}.interval == 1ns);
}

TEST_CASE("at_most spreads what the burst leaves over the window", "[gcra]")
{
    CHECK(gcra::at_most(10, 7s, {.burst = 4}) == gcra{.limit = 7, .window = 7s, .burst = 4});
    CHECK(gcra::at_most(10, 7s, {.burst = 10}).interval == 7s);
    CHECK_THROWS_AS(gcra::at_most(10, 7s, {.burst = 0}), std::invalid_argument);
    CHECK_THROWS_AS(gcra::at_most(10, 7s, {.burst = 11}), std::invalid_argument);
    CHECK_THROWS_AS(gcra::at_most(0, 7s), std::invalid_argument);
}

TEST_CASE("what is given back comes back at once, and not after its TAT", "[gcra]")
{
    one_client client(gcra{.limit = 10, .window = 10s});
    const auto made = client.admit(0, 10);
    client.limiter.give_back("client", made, t(4'000));
    CHECK(client.limiter.peek("client", {}, t(4'000)).left == 10);
    const auto again = client.admit(4'000, 10);
    client.limiter.give_back("client", made, t(10'000));  // it lapsed with the first TAT
    CHECK(client.limiter.peek("client", {}, t(10'000)).left == 6);
    client.limiter.give_back("client", again, t(13'999));
    CHECK(client.limiter.peek("client", {}, t(13'999)).left == 10);
}

TEST_CASE("a debt is remembered for an hour beyond the burst and no longer", "[gcra]")
{
    one_client client(gcra{.limit = 10, .window = 10s});
    client.limiter.charge("client", {~std::uint64_t{0}}, t(0));
    CHECK(client.admit(0).retry_after == 1h + 1s);
    CHECK(!client.admit(3'600'999));
    CHECK(client.admit(3'601'000));
}

TEST_CASE("numbers that instants cannot hold are named in the complaint", "[gcra]")
{
    CHECK(gcra{.limit = 0, .window = 1s}.complaint().empty());
    CHECK(gcra{.limit = 1, .window = -1s}.complaint().find("window") != std::string::npos);
    CHECK(gcra{.limit = 1, .window = 1s, .burst = 0}.complaint().find("burst") !=
          std::string::npos);
    CHECK(!gcra{.limit = 1, .window = 1s, .burst = 1, .interval = 2s}.complaint().empty());
    constexpr auto most = (std::uint64_t{1} << 61) / 1'000'000'000;
    CHECK(gcra{.limit = 1, .window = 1s, .burst = most}.complaint().empty());
    CHECK(gcra{.limit = 1, .window = 1s, .burst = most + 1}.complaint().find(
              std::to_string(most)) != std::string::npos);
}

TEST_CASE("the worse of two states of a gcra leaves no more than either", "[gcra]")
{
    constexpr gcra    limit{.limit = 10, .window = 10s};
    const gcra::state early{t(1'000)}, late{t(9'000)};
    CHECK(limit.worse(early, late) == late);
    CHECK(limit.lighter(early, late));
    CHECK(!limit.lighter(late, early));
    CHECK(!limit.lighter(late, late));
    CHECK(limit.worse({}, early) == early);
}
