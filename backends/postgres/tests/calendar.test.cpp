// SPDX-License-Identifier: BSL-1.0

// Places within transactions of callers, on PostgreSQL.

#include "weir/postgres/calendar.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "reference/calendar.hpp"
#include "reference/random.hpp"
#include "caller.hpp"
#include "stores.hpp"

using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using reference::utc;
using scratch::caller;
using weir::placed;
using weir::postgres::calendar;

namespace {

const auto at  = utc("2026-01-05T09:20:00");
const auto ten = utc("2026-01-05T10:00:00");

/// One placement in a transaction of its own.
weir::placement place(caller& by, calendar& in, weir::instant when)
{
    REQUIRE(by.run("BEGIN"));
    const auto found = in.place(by, when);
    REQUIRE(by.run("COMMIT"));
    return found;
}

calendar made(PGconn* by, const scratch::future_schema& home, const weir::calendar_caps& caps,
              const std::string& name = "mails")
{
    return {by, name, caps, {.schema = home.name()}};
}

weir::key source(std::uint64_t number) { return {number, 0}; }

}  // namespace

TEST_CASE("the case table of the calendar holds in PostgreSQL (D11 to D18)", "[postgres][calendar]")
{
    const scratch::future_schema home("calendar_cases");
    caller                       db;
    std::optional<calendar>      windows;
    reference::hold_calendar_cases(
        [&](const auto& one) {
            windows.emplace(db, one.name, one.caps,
                            weir::postgres::calendar_options{.schema = home.name()});
        },
        [&](weir::instant when) { return place(db, *windows, when); });
}

TEST_CASE("random caps and histories: PostgreSQL places as the search window by window does",
          "[postgres][calendar]")
{
    const scratch::future_schema home("calendar_random");
    caller                       db;
    reference::generator         random(20260107);
    for (int history = 0; history < 12; ++history) {
        weir::calendar_caps caps{.per_hour = reference::random_number<std::uint32_t>(random, 1, 8),
                                 .per_day  = reference::random_number<std::uint32_t>(random, 1, 30),
                                 .spread   = history % 3 == 0,
                                 .day_starts = std::chrono::hours(history % 2 * 7),
                                 .horizon    = std::chrono::days(8)};
        auto                windows = made(db, home, caps, std::to_string(history));
        reference::naive_calendar naive(caps);
        auto                      when = at;
        INFO("history " << history << ": " << caps.per_hour << " an hour, " << caps.per_day
                        << " a day");
        for (int arrival = 0; arrival < 150; ++arrival) {
            INFO("arrival " << arrival);
            if (reference::chance(random, 40))
                when += std::chrono::minutes(reference::random_number(random, 0, 120));
            const bool rolls_back = !caps.spread && reference::chance(random, 10);
            REQUIRE(db.run("BEGIN"));
            const auto found = windows.place(db, when);
            REQUIRE(db.run(rolls_back ? "ROLLBACK" : "COMMIT"));
            const auto expected = naive.place(when);
            REQUIRE((found ? std::optional(found.release) : std::nullopt) == expected);
            if (rolls_back && expected) naive.give_back(*expected);
        }
    }
}

TEST_CASE("10,000 placements on PostgreSQL look at 20,000 windows at most (D20)",
          "[postgres][calendar]")
{
    const scratch::future_schema home("calendar_steps");
    caller                       db;
    auto                         windows = made(db, home, {.per_hour = 30, .per_day = 100});
    std::uint64_t                steps   = 0;
    weir::placement              last;
    for (int i = 0; i < 10'000; ++i) last = place(db, windows, at), steps += last.steps;
    CHECK(last.release == utc("2026-04-14T03:00:00"));
    CHECK(steps <= 20'000);
    CHECK(steps < 11'000);
    // A process that starts now walks over what is full once.
    auto other = made(db, home, {.per_hour = 30, .per_day = 100});
    CHECK(place(db, other, at).steps > 100);
    CHECK(place(db, other, at).steps == 1);
}

TEST_CASE("D22: two transactions that race for the last place get it and the next window",
          "[postgres][calendar]")
{
    const scratch::future_schema home("calendar_race");
    caller                       db, rival;
    for (int repeat = 0; repeat < 100; ++repeat) {
        INFO("repeat " << repeat);
        auto windows = made(db, home, {.per_hour = 3, .per_day = 100}, std::to_string(repeat));
        for (int i = 0; i < 2; ++i) (void)place(db, windows, at);
        std::barrier    together(2);
        weir::placement mine, other;
        bool            committed = false;
        std::thread     racer([&] {
            rival.run("BEGIN");
            together.arrive_and_wait();
            other     = windows.place(rival, at);
            committed = rival.run("COMMIT");
        });
        REQUIRE(db.run("BEGIN"));
        together.arrive_and_wait();
        mine                = windows.place(db, at);
        const bool mine_too = db.run("COMMIT");
        racer.join();
        REQUIRE(mine_too);
        REQUIRE(committed);
        REQUIRE(std::min(mine.release, other.release) == at);
        REQUIRE(std::max(mine.release, other.release) == ten);
    }
}

TEST_CASE("D22: 16 callers at once, some of whom roll back, pass no cap and leave no place empty",
          "[postgres][calendar]")
{
    const scratch::future_schema home("calendar_crowd");
    caller                       db;
    auto                         windows = made(db, home, {.per_hour = 30, .per_day = 100});
    std::vector<std::thread>     crowd;
    std::atomic<int>             failures = 0;
    for (unsigned n = 0; n < 16; ++n)
        crowd.emplace_back([&, n] {
            caller               own;
            reference::generator random(n);
            for (int i = 0; i < 25; ++i) {
                own.run("BEGIN");
                if (!windows.place(own, at)) ++failures;
                own.run(reference::chance(random, 20) ? "ROLLBACK" : "COMMIT");
            }
        });
    for (auto& one : crowd) one.join();
    CHECK(failures == 0);
    scratch::session eye;
    const auto       in = home.name() + ".places";
    CHECK(eye.must("SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM " + in +
                   " GROUP BY hour) AS h")
              .number() <= 30);
    CHECK(eye.must("SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM " + in +
                   " GROUP BY day) AS d")
              .number() <= 100);
    // What was rolled back is there for those who come next: then all is full up to the last one.
    for (int i = 0; i < 500; ++i) (void)place(db, windows, at);
    const auto left =
        eye.must("SELECT count(*) FROM (SELECT day, count(*) AS n FROM " + in +
                 " GROUP BY day) AS d WHERE n < 100 AND day < (SELECT max(day) FROM " + in + ")");
    CHECK(left.number() == 0);
}

TEST_CASE("D12: 250 at once from 25 connections lie as if they had come one after the other",
          "[postgres][calendar]")
{
    const scratch::future_schema home("calendar_250");
    caller                       db;
    std::vector<caller>          callers(25);
    for (int repeat = 0; repeat < 10; ++repeat) {
        auto windows = made(db, home, {.per_hour = 30, .per_day = 100}, std::to_string(repeat));
        std::vector<weir::instant> releases(250);
        std::barrier               together(25);
        std::vector<std::thread>   crowd;
        for (std::size_t n = 0; n < callers.size(); ++n)
            crowd.emplace_back([&, n] {
                together.arrive_and_wait();
                for (std::size_t i = 0; i < 10; ++i) {
                    callers[n].run("BEGIN");
                    releases[n * 10 + i] = windows.place(callers[n], at).release;
                    callers[n].run("COMMIT");
                }
            });
        for (auto& one : crowd) one.join();
        std::ranges::sort(releases);
        const auto cases = reference::calendar_cases();
        const auto d12   = std::ranges::find(cases, "D12", &reference::calendar_case::name);
        REQUIRE(d12 != cases.end());
        REQUIRE(releases == d12->releases);
    }
}

TEST_CASE("nobody waits for a transaction that holds a place and does not end",
          "[postgres][calendar]")
{
    const scratch::future_schema home("calendar_no_wait");
    caller                       slow, quick;
    auto                         windows = made(slow, home, {.per_hour = 1, .per_day = 100});
    REQUIRE(slow.run("BEGIN"));
    CHECK(windows.place(slow, at).release == at);
    REQUIRE(quick.run("SET lock_timeout = '5s'"));
    CHECK(place(quick, windows, at).release == ten);
    // The first one's place is free again, and not skipped by what was learned meanwhile.
    REQUIRE(slow.run("ROLLBACK"));
    CHECK(place(quick, windows, at).release == at);
    CHECK(place(quick, windows, at).release == ten + 1h);
}

TEST_CASE("D24: what is rolled back frees the place, also where it filled the window",
          "[postgres][calendar]")
{
    const scratch::future_schema home("calendar_rollback");
    caller                       db;
    auto                         windows = made(db, home, {.per_hour = 2, .per_day = 3});
    for (const auto* const end : {"ROLLBACK", "COMMIT"}) {
        REQUIRE(db.run("BEGIN"));
        CHECK(windows.place(db, at).release == at);
        CHECK(windows.place(db, at).release == at);
        CHECK(windows.place(db, at).release == ten);
        CHECK(windows.place(db, at).release == utc("2026-01-06T00:00:00"));
        REQUIRE(db.run(end));
    }
    REQUIRE(db.run("BEGIN; SAVEPOINT here"));
    CHECK(windows.place(db, at).release == utc("2026-01-06T00:00:00"));
    CHECK(windows.place(db, at).release == utc("2026-01-06T01:00:00"));
    REQUIRE(db.run("ROLLBACK TO here"));
    CHECK(windows.place(db, at).release == utc("2026-01-06T00:00:00"));
    REQUIRE(db.run("COMMIT"));
}

TEST_CASE("D25: without a transaction there is no place, rather than one that nobody holds",
          "[postgres][calendar]")
{
    const scratch::future_schema home("calendar_capable");
    caller                       db;
    auto                         windows = made(db, home, {});
    CHECK(windows.place(db, at).when == placed::failed);
    CHECK(windows.release(db, 1, at).empty());
    CHECK(!windows.enqueue(db, source(1), "a"));
    REQUIRE(db.run("BEGIN"));
    CHECK(!db.run("SELECT 1 / 0"));
    CHECK(windows.place(db, at).when == placed::failed);
    REQUIRE(db.run("ROLLBACK"));
    REQUIRE(db.run("BEGIN READ ONLY"));
    CHECK(windows.place(db, at).when == placed::failed);
    REQUIRE(db.run("ROLLBACK"));
    CHECK(place(db, windows, at).when == placed::now);
}

TEST_CASE("a calendar that cannot work refuses to start", "[postgres][calendar]")
{
    const scratch::future_schema home("calendar_start");
    caller                       db;
    CHECK_THROWS_AS(made(db, home, {.per_hour = 0}), std::invalid_argument);
    CHECK_THROWS_AS(calendar(db, "x", {}, {.schema = "a b"}), std::invalid_argument);
    CHECK_THROWS_WITH(calendar(db, "x", {}, {.schema = home.name(), .make_schema = false}),
                      Contains("make_schema is off"));
    REQUIRE(db.run("BEGIN"));
    CHECK_THROWS_WITH(made(db, home, {}), Contains("outside of a transaction"));
    REQUIRE(db.run("ROLLBACK"));
    (void)made(db, home, {});
    REQUIRE(db.run("UPDATE " + home.name() + ".meta SET value = '2' WHERE name = 'calendar'"));
    CHECK_THROWS_WITH(made(db, home, {}), Contains("version \"2\""));
}

TEST_CASE("a calendar stands beside the counters of a store in one schema, whichever comes first",
          "[postgres][calendar]")
{
    const scratch::future_schema home("calendar_beside");
    caller                       db;
    auto                         windows = made(db, home, {});
    weir::postgres::store        counters(scratch::in(home.name()));
    auto                         again = made(db, home, {});
    CHECK(place(db, windows, at).when == placed::now);
    CHECK(place(db, again, at).when == placed::now);
}

TEST_CASE("without an instant the server's clock says what now is", "[postgres][calendar]")
{
    const scratch::future_schema home("calendar_clock");
    caller                       db;
    auto                         windows = made(db, home, {.per_hour = 1'000, .per_day = 1'000});
    REQUIRE(db.run("BEGIN"));
    const auto found = windows.place(db);
    REQUIRE(db.run("COMMIT"));
    const auto here = weir::now();
    CHECK(found.when == placed::now);
    CHECK(found.release > here - 1min);
    CHECK(found.release < here + 1min);
}

TEST_CASE("past the horizon there is no window in PostgreSQL either (D19)", "[postgres][calendar]")
{
    const scratch::future_schema home("calendar_horizon");
    caller                       db;
    auto windows = made(db, home, {.per_hour = 1, .per_day = 1, .horizon = std::chrono::days(2)});
    for (int i = 0; i < 3; ++i) CHECK(place(db, windows, at));
    CHECK(place(db, windows, at).when == placed::no_window);
    CHECK(place(db, windows, at + 24h).release == utc("2026-01-08T00:00:00"));
    CHECK(!place(db, windows, weir::instant(-1ns)));
}

TEST_CASE("a cap that was lowered is kept by what is placed from then on", "[postgres][calendar]")
{
    const scratch::future_schema home("calendar_lowered");
    caller                       db;
    auto                         wide = made(db, home, {.per_hour = 5, .per_day = 100});
    for (int i = 0; i < 4; ++i) CHECK(place(db, wide, at).release == at);
    auto narrow = made(db, home, {.per_hour = 2, .per_day = 100});
    CHECK(place(db, narrow, at).release == ten);
    auto wider = made(db, home, {.per_hour = 6, .per_day = 100});
    CHECK(place(db, wider, at).release == at);
    CHECK(place(db, wider, at).release == at);
    CHECK(place(db, wider, at).release == ten);
}

TEST_CASE("old places go by a sweep, and those that still count stay", "[postgres][calendar]")
{
    const scratch::future_schema home("calendar_sweep");
    caller                       db;
    auto                         windows = made(db, home, {.per_hour = 1, .per_day = 100});
    for (int i = 0; i < 5; ++i) (void)place(db, windows, at + i * 24h);
    CHECK(windows.sweep(db, at + 4 * 24h));
    scratch::session eye;
    CHECK(eye.must("SELECT count(*) FROM " + home.name() + ".places").number() == 3);
    CHECK(place(db, windows, at + 4 * 24h).when == placed::later);
}

TEST_CASE(
    "D36: fair on PostgreSQL: ten honest ones behind 200 of one source go in the first window",
    "[postgres][calendar]")
{
    const scratch::future_schema home("calendar_fair");
    caller                       db;
    auto                         windows = made(db, home, {.per_hour = 30, .per_day = 100});
    const auto                   release = [&](weir::instant when, std::size_t most = 1'000) {
        REQUIRE(db.run("BEGIN"));
        auto gone = windows.release(db, most, when);
        REQUIRE(db.run("COMMIT"));
        return gone;
    };
    const auto others = [](const std::vector<std::string>& gone) {
        return std::ranges::count_if(gone, [](const auto& item) { return item[0] == 'h'; });
    };
    REQUIRE(db.run("BEGIN"));
    for (int i = 0; i < 200; ++i) REQUIRE(windows.enqueue(db, source(0), "a" + std::to_string(i)));
    REQUIRE(db.run("COMMIT"));
    CHECK(release(at, 4) == std::vector<std::string>{"a0", "a1", "a2", "a3"});
    CHECK(release(at).size() == 26);
    REQUIRE(db.run("BEGIN"));
    for (unsigned i = 0; i < 10; ++i)
        REQUIRE(windows.enqueue(db, source(1 + i), "h" + std::to_string(i)));
    REQUIRE(db.run("COMMIT"));
    CHECK(release(at).empty());
    REQUIRE(db.run("BEGIN"));
    CHECK(windows.release(db, 1'000, ten).size() == 30);
    REQUIRE(db.run("ROLLBACK"));
    const auto next = release(ten);
    CHECK(next.size() == 30);
    CHECK(others(next) == 10);
    CHECK(release(ten + 1h).size() == 30);
    CHECK(release(ten + 2h).size() == 10);
    CHECK(release(ten + 3h).empty());
}
