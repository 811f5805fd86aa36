// SPDX-License-Identifier: BSL-1.0

#include "weir/policy/fair_calendar.hpp"

#include "catch.hpp"
#include "reference/calendar.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using reference::utc;

namespace {

const auto at  = utc("2026-01-05T09:20:00");
const auto ten = utc("2026-01-05T10:00:00");

weir::key source(std::uint64_t number) { return {number, 0}; }

/// The 200 of source 0 are named 0 to 199, the ten others 1000 and up.
void crowd_and_ten(weir::fair_calendar<int>& mails)
{
    for (int i = 0; i < 200; ++i) REQUIRE(mails.enqueue(source(0), i));
    for (int i = 0; i < 10; ++i)
        REQUIRE(mails.enqueue(source(1 + static_cast<unsigned>(i)), 1'000 + i));
}

auto others_in(const std::vector<int>& released)
{
    return std::ranges::count_if(released, [](int item) { return item >= 1'000; });
}

}  // namespace

TEST_CASE("D36: ten honest ones behind 200 of one source all go in the first window with room",
          "[calendar]")
{
    weir::fair_calendar<int> mails({.per_hour = 30, .per_day = 100});
    crowd_and_ten(mails);
    const auto now = mails.release(at);
    CHECK(now.size() == 30);
    CHECK(others_in(now) == 10);
    CHECK(mails.release(at).empty());
    CHECK(mails.release(ten).size() == 30);
    CHECK(mails.release(ten + 1h).size() == 30);
    CHECK(mails.release(ten + 2h).size() == 10);
    CHECK(mails.release(ten + 3h).empty());
    CHECK(mails.waiting() == 110);
}

TEST_CASE("D36: who came while the window was full goes in the next one, before who has sent 200",
          "[calendar]")
{
    weir::fair_calendar<int> mails({.per_hour = 30, .per_day = 100});
    for (int i = 0; i < 200; ++i) REQUIRE(mails.enqueue(source(0), i));
    CHECK(mails.release(at).size() == 30);
    for (int i = 0; i < 10; ++i)
        REQUIRE(mails.enqueue(source(1 + static_cast<unsigned>(i)), 1'000 + i));
    CHECK(mails.release(at).empty());
    const auto next = mails.release(ten);
    CHECK(next.size() == 30);
    CHECK(others_in(next) == 10);
    CHECK(std::ranges::all_of(next.begin(), next.begin() + 10,
                              [](int item) { return item >= 1'000; }));
}

TEST_CASE("what one source sent goes in the order in which it came", "[calendar]")
{
    weir::fair_calendar<int> mails({.per_hour = 3, .per_day = 100});
    for (int i = 0; i < 3; ++i) REQUIRE(mails.enqueue(source(1), i));
    for (int i = 10; i < 13; ++i) REQUIRE(mails.enqueue(source(2), i));
    CHECK(mails.release(at) == std::vector{0, 10, 1});
    CHECK(mails.release(ten) == std::vector{11, 2, 12});
}

TEST_CASE("a source that had its turn is not behind one that never came", "[calendar]")
{
    weir::fair_calendar<int> mails({.per_hour = 30, .per_day = 100});
    for (int i = 0; i < 30; ++i) REQUIRE(mails.enqueue(source(1), i));
    CHECK(mails.release(at).size() == 30);
    REQUIRE(mails.enqueue(source(1), 31));
    for (int i = 0; i < 5; ++i) REQUIRE(mails.enqueue(source(2), 100 + i));
    const auto next = mails.release(ten);
    CHECK(std::ranges::find(next, 31) - next.begin() <= 1);
}

TEST_CASE("a queue holds no more than it was given room for", "[calendar]")
{
    weir::fair_calendar<std::string> mails({.per_hour = 1, .per_day = 100}, 2);
    CHECK(mails.enqueue(source(1), "a"));
    CHECK(mails.enqueue(source(1), "b"));
    CHECK(!mails.enqueue(source(2), "c"));
    CHECK(mails.release(at, 1) == std::vector<std::string>{"a"});
    CHECK(mails.enqueue(source(2), "c"));
    CHECK(mails.waiting() == 2);
}

TEST_CASE("no more is released than was asked for, and the rest of the window stays", "[calendar]")
{
    weir::fair_calendar<int> mails({.per_hour = 30, .per_day = 100});
    crowd_and_ten(mails);
    CHECK(mails.release(at, 4).size() == 4);
    CHECK(mails.release(at, 0).empty());
    CHECK(mails.release(at).size() == 26);
}
