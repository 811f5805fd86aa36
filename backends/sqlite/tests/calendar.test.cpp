// SPDX-License-Identifier: BSL-1.0

// Places within transactions of callers, on SQLite.

#include "weir/sqlite/calendar.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "weir/sqlite/spent_tokens.hpp"

#include "catch.hpp"
#include "reference/calendar.hpp"
#include "reference/random.hpp"
#include "caller.hpp"
#include "scratch.hpp"

using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using reference::utc;
using scratch::caller;
using weir::placed;
using weir::sqlite::calendar;
using weir::sqlite::spent_tokens;

namespace {

const auto at  = utc("2026-01-05T09:20:00");
const auto ten = utc("2026-01-05T10:00:00");

/// One placement in a transaction of its own.
weir::placement place(caller& by, calendar& in, weir::instant when)
{
    REQUIRE(by.run("BEGIN IMMEDIATE"));
    const auto found = in.place(by, when);
    REQUIRE(by.run("COMMIT"));
    return found;
}

weir::key source(std::uint64_t number) { return {number, 0}; }

}  // namespace

TEST_CASE("the case table of the calendar holds in SQLite (D11 to D18)", "[sqlite][calendar]")
{
    const scratch::folder   folder;
    caller                  db(folder / "site.db");
    std::optional<calendar> windows;
    reference::hold_calendar_cases(
        [&](const auto& one) { windows.emplace(db, one.name, one.caps); },
        [&](weir::instant when) { return place(db, *windows, when); });
}

TEST_CASE("random caps and histories: SQLite places as the search window by window does",
          "[sqlite][calendar]")
{
    const scratch::folder folder;
    caller                db(folder / "site.db");
    reference::generator  random(20260108);
    for (int history = 0; history < 20; ++history) {
        weir::calendar_caps caps{.per_hour = reference::random_number<std::uint32_t>(random, 1, 8),
                                 .per_day  = reference::random_number<std::uint32_t>(random, 1, 30),
                                 .spread   = history % 3 == 0,
                                 .day_starts = std::chrono::hours(history % 2 * 7),
                                 .horizon    = std::chrono::days(8)};
        calendar            windows(db, std::to_string(history), caps);
        reference::naive_calendar naive(caps);
        auto                      when = at;
        INFO("history " << history << ": " << caps.per_hour << " an hour, " << caps.per_day
                        << " a day");
        for (int arrival = 0; arrival < 200; ++arrival) {
            INFO("arrival " << arrival);
            if (reference::chance(random, 40))
                when += std::chrono::minutes(reference::random_number(random, 0, 120));
            const bool rolls_back = !caps.spread && reference::chance(random, 10);
            REQUIRE(db.run("BEGIN IMMEDIATE"));
            const auto found = windows.place(db, when);
            REQUIRE(db.run(rolls_back ? "ROLLBACK" : "COMMIT"));
            const auto expected = naive.place(when);
            REQUIRE((found ? std::optional(found.release) : std::nullopt) == expected);
            if (rolls_back && expected) naive.give_back(*expected);
        }
    }
}

TEST_CASE("10,000 placements on SQLite look at 20,000 windows at most (D20)", "[sqlite][calendar]")
{
    const scratch::folder folder;
    caller                db(folder / "site.db");
    calendar              windows(db, "mails", {.per_hour = 30, .per_day = 100});
    std::uint64_t         steps = 0;
    weir::placement       last;
    for (int i = 0; i < 10'000; ++i) last = place(db, windows, at), steps += last.steps;
    CHECK(last.release == utc("2026-04-14T03:00:00"));
    CHECK(steps <= 20'000);
    CHECK(steps < 11'000);
    calendar after_a_restart(db, "mails", {.per_hour = 30, .per_day = 100});
    CHECK(place(db, after_a_restart, at).steps <= 2);
}

TEST_CASE("D22: two connections that race for the last place get it and the next window",
          "[sqlite][calendar]")
{
    const scratch::folder folder;
    caller                db(folder / "site.db"), rival(folder / "site.db");
    for (int repeat = 0; repeat < 100; ++repeat) {
        INFO("repeat " << repeat);
        calendar windows(db, std::to_string(repeat), {.per_hour = 3, .per_day = 100});
        for (int i = 0; i < 2; ++i) (void)place(db, windows, at);
        std::barrier together(2);
        const auto   post = [&](caller& by) {
            together.arrive_and_wait();
            by.run("BEGIN IMMEDIATE");
            const auto found = windows.place(by, at);
            return by.run("COMMIT") ? found : weir::placement{};
        };
        weir::placement other;
        std::thread     racer([&] { other = post(rival); });
        const auto      mine = post(db);
        racer.join();
        REQUIRE(mine);
        REQUIRE(other);
        REQUIRE(std::min(mine.release, other.release) == at);
        REQUIRE(std::max(mine.release, other.release) == ten);
    }
}

TEST_CASE("D24: what is rolled back frees the place, also where it filled the window",
          "[sqlite][calendar]")
{
    const scratch::folder folder;
    caller                db(folder / "site.db");
    calendar              windows(db, "mails", {.per_hour = 2, .per_day = 3});
    for (const auto* const end : {"ROLLBACK", "COMMIT"}) {
        REQUIRE(db.run("BEGIN IMMEDIATE"));
        CHECK(windows.place(db, at).release == at);
        CHECK(windows.place(db, at).release == at);
        CHECK(windows.place(db, at).release == ten);
        CHECK(windows.place(db, at).release == utc("2026-01-06T00:00:00"));
        REQUIRE(db.run(end));
    }
    REQUIRE(db.run("BEGIN IMMEDIATE; SAVEPOINT here"));
    CHECK(windows.place(db, at).release == utc("2026-01-06T00:00:00"));
    REQUIRE(db.run("ROLLBACK TO here"));
    CHECK(windows.place(db, at).release == utc("2026-01-06T00:00:00"));
    REQUIRE(db.run("COMMIT"));
}

TEST_CASE("D25: without a transaction, or without the right to write, there is no place",
          "[sqlite][calendar]")
{
    const scratch::folder folder;
    caller                db(folder / "site.db"), rival(folder / "site.db");
    calendar              windows(db, "mails", {.per_hour = 1, .per_day = 100});
    CHECK(windows.place(db, at).when == placed::failed);
    CHECK(!windows.enqueue(db, source(1), "a"));
    CHECK(windows.release(db, 1, at).empty());

    // One that began by reading, and somebody wrote meanwhile: SQLite says busy, and nothing is
    // held.
    REQUIRE(rival.run("BEGIN; SELECT count(*) FROM weir_calendars"));
    CHECK(place(db, windows, at).release == at);
    CHECK(windows.place(rival, at).when == placed::failed);
    REQUIRE(rival.run("ROLLBACK"));
    CHECK(place(rival, windows, at).release == ten);
}

TEST_CASE("a calendar that cannot work refuses to start on SQLite", "[sqlite][calendar]")
{
    const scratch::folder folder;
    caller                db(folder / "site.db");
    CHECK_THROWS_AS(calendar(db, "mails", {.per_day = 0}), std::invalid_argument);
    REQUIRE(db.run("BEGIN"));
    CHECK_THROWS_WITH(calendar(db, "mails", {}), Contains("outside of a transaction"));
    REQUIRE(db.run("ROLLBACK"));
    (void)calendar(db, "mails", {});
    REQUIRE(db.run("UPDATE weir_meta SET value = 2 WHERE name = 'calendar'"));
    CHECK_THROWS_WITH(calendar(db, "mails", {}), Contains("version 2"));

    sqlite3* locked = nullptr;
    REQUIRE(sqlite3_open_v2((folder / "site.db").c_str(), &locked, SQLITE_OPEN_READONLY, nullptr) ==
            SQLITE_OK);
    CHECK_THROWS_AS(spent_tokens(locked), std::invalid_argument);
    sqlite3_close(locked);
}

TEST_CASE("a calendar stands beside the counters of a store in one file, whichever comes first",
          "[sqlite][calendar]")
{
    const scratch::folder folder;
    caller                db(folder / "site.db");
    calendar              windows(db, "mails", {});
    weir::sqlite::store   counters(scratch::in(folder / "site.db"));
    calendar              again(db, "mails", {});
    CHECK(place(db, windows, at).when == placed::now);
    CHECK(place(db, again, at).when == placed::now);
}

TEST_CASE("past the horizon there is no window in SQLite either (D19)", "[sqlite][calendar]")
{
    const scratch::folder folder;
    caller                db(folder / "site.db");
    calendar windows(db, "mails", {.per_hour = 1, .per_day = 1, .horizon = std::chrono::days(2)});
    for (int i = 0; i < 3; ++i) CHECK(place(db, windows, at));
    CHECK(place(db, windows, at).when == placed::no_window);
    CHECK(place(db, windows, at + 24h).release == utc("2026-01-08T00:00:00"));
}

TEST_CASE("a cap that was changed holds for what is placed from then on", "[sqlite][calendar]")
{
    const scratch::folder folder;
    caller                db(folder / "site.db");
    calendar              wide(db, "mails", {.per_hour = 5, .per_day = 100});
    for (int i = 0; i < 4; ++i) CHECK(place(db, wide, at).release == at);
    calendar narrow(db, "mails", {.per_hour = 2, .per_day = 100});
    CHECK(place(db, narrow, at).release == ten);
    calendar wider(db, "mails", {.per_hour = 6, .per_day = 100});
    CHECK(place(db, wider, at).release == at);
    CHECK(place(db, wider, at).release == at);
    CHECK(place(db, wider, at).release == ten);
}

TEST_CASE("old counts go by a sweep, and those that still matter stay", "[sqlite][calendar]")
{
    const scratch::folder folder;
    caller                db(folder / "site.db");
    calendar              windows(db, "mails", {.per_hour = 1, .per_day = 100});
    for (int i = 0; i < 5; ++i) (void)place(db, windows, at + i * 24h);
    CHECK(windows.sweep(db, at + 4 * 24h));
    scratch::hand eye(folder / "site.db");
    CHECK(eye.number("SELECT count(*) FROM weir_calendar_windows WHERE span = 1") == 3);
    CHECK(eye.number("SELECT count(*) FROM weir_calendar_windows WHERE span = 24") == 3);
    CHECK(place(db, windows, at + 4 * 24h).when == placed::later);
}

TEST_CASE("D36: fair on SQLite: ten honest ones behind 200 of one source go in the first window",
          "[sqlite][calendar]")
{
    const scratch::folder folder;
    caller                db(folder / "site.db");
    calendar              windows(db, "mails", {.per_hour = 30, .per_day = 100});
    const auto            release = [&](weir::instant when, std::size_t most = 1'000) {
        REQUIRE(db.run("BEGIN IMMEDIATE"));
        auto gone = windows.release(db, most, when);
        REQUIRE(db.run("COMMIT"));
        return gone;
    };
    const auto others = [](const std::vector<std::string>& gone) {
        return std::ranges::count_if(gone, [](const auto& item) { return item[0] == 'h'; });
    };
    REQUIRE(db.run("BEGIN IMMEDIATE"));
    for (int i = 0; i < 200; ++i) REQUIRE(windows.enqueue(db, source(0), "a" + std::to_string(i)));
    REQUIRE(db.run("COMMIT"));
    CHECK(release(at, 4) == std::vector<std::string>{"a0", "a1", "a2", "a3"});
    CHECK(release(at).size() == 26);
    REQUIRE(db.run("BEGIN IMMEDIATE"));
    for (unsigned i = 0; i < 10; ++i)
        REQUIRE(windows.enqueue(db, source(1 + i), "h" + std::to_string(i)));
    REQUIRE(db.run("COMMIT"));
    CHECK(release(at).empty());
    REQUIRE(db.run("BEGIN IMMEDIATE"));
    CHECK(windows.release(db, 1'000, ten).size() == 30);
    REQUIRE(db.run("ROLLBACK"));
    const auto next = release(ten);
    CHECK(next.size() == 30);
    CHECK(others(next) == 10);
    CHECK(release(ten + 1h).size() == 30);
    CHECK(release(ten + 2h).size() == 10);
    CHECK(release(ten + 3h).empty());
}
