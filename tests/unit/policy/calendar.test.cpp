// SPDX-License-Identifier: BSL-1.0

#include "weir/policy/calendar.hpp"

#include "catch.hpp"
#include "reference/calendar.hpp"
#include "weir/key.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <map>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using reference::utc;
using weir::calendar;
using weir::calendar_caps;
using weir::placed;

namespace {

const auto at = utc("2026-01-05T09:20:00");

/// Places, and says nothing of how: on some store it might skip the lock.
struct unsaid {
    weir::placement place(weir::instant);
};
struct outside_of_a_transaction : unsaid {
    static constexpr bool places_atomically = false;
};

}  // namespace

TEST_CASE("D25: a class that does not look and hold in one step is no calendar", "[calendar]")
{
    STATIC_REQUIRE(weir::atomic_calendar<calendar>);
    STATIC_REQUIRE(!weir::atomic_calendar<unsaid>);
    STATIC_REQUIRE(!weir::atomic_calendar<outside_of_a_transaction>);
    STATIC_REQUIRE(!weir::atomic_calendar<calendar, int>);
}

TEST_CASE("the case table of the calendar holds in memory (D11 to D18)", "[calendar]")
{
    std::optional<calendar> windows;
    reference::hold_calendar_cases([&](const auto& one) { windows.emplace(one.caps); },
                                   [&](weir::instant when) { return windows->place(when); });
}

TEST_CASE("D18: 1,000 at 4 an hour take 250 hours, and the last one goes ten days later at 18:00",
          "[calendar]")
{
    calendar                     windows({.per_hour = 4, .per_day = 100});
    std::map<weir::instant, int> releases;
    weir::placement              last;
    for (int i = 0; i < 1'000; ++i) last = windows.place(at), ++releases[last.release];
    CHECK(releases.size() == 250);
    CHECK(last.release == utc("2026-01-15T18:00:00"));
}

TEST_CASE("D06: what may go at once was not deferred, and what waits tells until when",
          "[calendar]")
{
    calendar windows({.per_hour = 1, .per_day = 2});
    CHECK(windows.place(at).deferred_until() == std::nullopt);
    CHECK(windows.place(at).deferred_until() == utc("2026-01-05T10:00:00"));
}

TEST_CASE("10,000 placements look at 20,000 windows at most (D20)", "[calendar]")
{
    calendar        windows({.per_hour = 30, .per_day = 100});
    std::uint64_t   steps = 0;
    weir::placement last;
    for (int i = 0; i < 10'000; ++i) last = windows.place(at), steps += last.steps;
    CHECK(last.release == utc("2026-04-14T03:00:00"));  // the hundredth day
    CHECK(steps <= 20'000);
    CHECK(steps < 11'000);
}

TEST_CASE("a cap of 0 is a configuration error (D19)", "[calendar]")
{
    CHECK_THROWS_AS(calendar({.per_hour = 0}), std::invalid_argument);
    CHECK_THROWS_AS(calendar({.per_day = 0}), std::invalid_argument);
    CHECK_THROWS_AS(calendar({.day_starts = 24h}), std::invalid_argument);
    CHECK_THROWS_AS(calendar({.day_starts = -1h}), std::invalid_argument);
    CHECK_THROWS_AS(calendar({.horizon = std::chrono::days(0)}), std::invalid_argument);
    CHECK_THROWS_AS(calendar({.per_hour = 1'000'001}), std::invalid_argument);
    CHECK_NOTHROW(calendar({.per_hour = 1'000'000, .per_day = 1, .day_starts = 23h}));
}

TEST_CASE("past the horizon there is no window, and nothing is placed there (D19)", "[calendar]")
{
    calendar windows({.per_hour = 1, .per_day = 1, .horizon = std::chrono::days(2)});
    CHECK(windows.place(at).when == placed::now);
    CHECK(windows.place(at).release == utc("2026-01-06T00:00:00"));
    CHECK(windows.place(at).release == utc("2026-01-07T00:00:00"));
    const auto none = windows.place(at);
    CHECK(none.when == placed::no_window);
    CHECK(!none);
    CHECK(windows.place(at + 24h).release == utc("2026-01-08T00:00:00"));
}

TEST_CASE("instants at the ends of time have no window and break nothing", "[calendar]")
{
    for (const bool spread : {false, true}) {
        calendar windows({.spread = spread});
        CHECK(!windows.place(weir::instant::min()));
        CHECK(!windows.place(weir::instant(-1ns)));
        CHECK(!windows.place_now(weir::instant(-1ns)));
        CHECK(windows.place(weir::instant()));
        for (int i = 0; i < 200; ++i) (void)windows.place(weir::instant::max());
        CHECK(!windows.place(weir::instant::max()));
    }
}

TEST_CASE("day_starts moves the day and not the hour", "[calendar]")
{
    calendar                   windows({.per_hour = 2, .per_day = 3, .day_starts = 10h});
    std::vector<weir::instant> releases;
    for (int i = 0; i < 6; ++i) releases.push_back(windows.place(at).release);
    const auto ten = utc("2026-01-05T10:00:00");
    CHECK(releases == std::vector{at, at, ten, ten, ten + 1h, ten + 24h});
}

TEST_CASE("O26: an hour and a day are those of UTC whatever the time zone of the machine",
          "[calendar]")
{
    for (const char* const zone : {"Europe/Berlin", "America/New_York", "Pacific/Chatham"}) {
        setenv("TZ", zone, 1);
        tzset();
        for (const char* const day : {"2026-03-29", "2026-10-25", "2026-03-08", "2026-04-05"}) {
            INFO(zone << ' ' << day);
            const auto last = utc(std::string(day) + "T23:59:59");
            calendar   windows({.per_hour = 1, .per_day = 1});
            CHECK(windows.place(last).release == last);
            CHECK(windows.place(last).release == last + 1s);
            CHECK(windows.place(last).release == last + 1s + 24h);
        }
    }
    unsetenv("TZ");
    tzset();
}

TEST_CASE("spread: no two releases share a second, and no hour has more than the cap (D35)",
          "[calendar]")
{
    calendar                   windows({.per_hour = 30, .per_day = 1'000, .spread = true});
    std::vector<weir::instant> releases;
    for (int i = 0; i < 500; ++i) releases.push_back(windows.place(at + i * 1s).release);
    std::ranges::sort(releases);
    CHECK(releases.front() == at);  // 09:20:00 is a slot: one every 120 s
    for (std::size_t i = 1; i < releases.size(); ++i)
        REQUIRE(releases[i] - releases[i - 1] == 120s);
    for (std::size_t i = 30; i < releases.size(); ++i)
        REQUIRE(releases[i] - releases[i - 30] >= 1h);
}

TEST_CASE("spread: a slot that has passed is not used, and the next one is waited for",
          "[calendar]")
{
    calendar windows({.per_hour = 2, .per_day = 100, .spread = true});
    CHECK(windows.place(at).release == utc("2026-01-05T09:30:00"));
    CHECK(windows.place(at).release == utc("2026-01-05T10:00:00"));
    CHECK(windows.place(at).release == utc("2026-01-05T10:30:00"));
    CHECK(windows.place(utc("2026-01-05T10:45:00")).release == utc("2026-01-05T11:00:00"));
}

TEST_CASE("spread: an hour whose slots have passed is not taken for full when the clock steps back",
          "[calendar]")
{
    calendar windows({.per_hour = 2, .per_day = 100, .spread = true});
    CHECK(windows.place(utc("2026-01-05T09:45:00")).release == utc("2026-01-05T10:00:00"));
    CHECK(windows.place(at).release == utc("2026-01-05T09:30:00"));
}

TEST_CASE("place_now gives what the present window has and nothing later", "[calendar]")
{
    calendar windows({.per_hour = 2, .per_day = 3});
    CHECK(windows.place_now(at).release == at);
    CHECK(windows.place_now(at).when == placed::now);
    CHECK(!windows.place_now(at));
    CHECK(windows.place_now(at + 1h));
    CHECK(!windows.place_now(at + 1h));  // the day is full
    CHECK(!windows.place_now(at + 5h));

    calendar slots({.per_hour = 2, .per_day = 100, .spread = true});
    CHECK(slots.place_now(at));  // the slot of 09:00
    CHECK(!slots.place_now(at + 9min));
    CHECK(slots.place_now(at + 10min));
    CHECK(!slots.place_now(at + 39min));
}

TEST_CASE("D24: a place that is given back is the next one's", "[calendar]")
{
    calendar   windows({.per_hour = 1, .per_day = 2});
    const auto first = windows.place(at);
    CHECK(windows.place(at).release == utc("2026-01-05T10:00:00"));
    CHECK(windows.place(at).release == utc("2026-01-06T00:00:00"));
    windows.give_back(first);
    CHECK(windows.place(at).release == at);
    CHECK(windows.place(at).release == utc("2026-01-06T01:00:00"));
    windows.give_back({});
    CHECK(windows.place(at).release == utc("2026-01-07T00:00:00"));
}

TEST_CASE("D22: of two threads that race for the last place one gets it and one the next window",
          "[calendar]")
{
    for (int repeat = 0; repeat < 100; ++repeat) {
        calendar windows({.per_hour = 30, .per_day = 100});
        for (int i = 0; i < 29; ++i) (void)windows.place(at);
        weir::placement mine, other;
        std::thread     racer([&] { other = windows.place(at); });
        mine = windows.place(at);
        racer.join();
        REQUIRE(std::min(mine.release, other.release) == at);
        REQUIRE(std::max(mine.release, other.release) == utc("2026-01-05T10:00:00"));
    }
}
