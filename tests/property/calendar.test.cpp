// SPDX-License-Identifier: BSL-1.0

// A calendar puts each arrival where a search window by window puts it.

#include "weir/policy/calendar.hpp"

#include "catch.hpp"
#include "reference/calendar.hpp"
#include "reference/random.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

using namespace std::chrono_literals;
using reference::chance;
using reference::generator;
using reference::random_number;

namespace {

weir::calendar_caps random_caps(generator& random)
{
    weir::calendar_caps caps;
    caps.per_hour   = random_number<std::uint32_t>(random, 1, 12);
    caps.per_day    = random_number<std::uint32_t>(random, 1, 60);
    caps.day_starts = std::chrono::hours(chance(random, 50) ? 0 : random_number(random, 0, 23));
    caps.horizon    = std::chrono::days(random_number(random, 1, 30));
    return caps;
}

weir::duration random_step(generator& random)
{
    if (chance(random, 60)) return 0ns;
    if (chance(random, 60))
        return weir::duration(random_number<std::int64_t>(random, 0, 600'000'000'000));
    if (chance(random, 70)) return std::chrono::minutes(random_number(random, 0, 180));
    return std::chrono::hours(random_number(random, 0, 60));
}

std::optional<weir::instant> release(const weir::placement& found)
{
    return found ? std::optional(found.release) : std::nullopt;
}

}  // namespace

TEST_CASE("random caps and histories: a calendar places as the search window by window does",
          "[calendar]")
{
    generator  random(20260105);
    const auto histories = reference::steps(300);
    for (std::uint64_t history = 0; history < histories; ++history) {
        const auto                caps = random_caps(random);
        weir::calendar            windows(caps);
        reference::naive_calendar naive(caps);
        auto                      at = reference::utc("2026-01-05T00:00:00") +
                  std::chrono::minutes(random_number(random, 0, 1'000'000));
        auto                         latest = at;
        std::vector<weir::placement> held;
        INFO("history " << history << ": " << caps.per_hour << " an hour, " << caps.per_day
                        << " a day");
        for (int arrival = 0; arrival < 400; ++arrival) {
            at += random_step(random);
            // A clock steps back, but never by a day in all.
            if (chance(random, 5))
                at = std::max(at - std::chrono::hours(random_number(random, 0, 5)), latest - 20h);
            latest = std::max(latest, at);
            INFO("arrival " << arrival);
            const auto found = windows.place(at);
            REQUIRE(release(found) == naive.place(at));
            if (found) held.push_back(found);
            if (!held.empty() && chance(random, 5) && held.back().release >= latest) {
                windows.give_back(held.back());
                naive.give_back(held.back().release);
                held.pop_back();
            }
        }
    }
}

TEST_CASE(
    "random caps and histories: slots that are spread lie where a search slot by slot puts them",
    "[calendar]")
{
    generator  random(20260106);
    const auto histories = reference::steps(100);
    for (std::uint64_t history = 0; history < histories; ++history) {
        auto caps   = random_caps(random);
        caps.spread = true;
        weir::calendar            windows(caps);
        reference::naive_calendar naive(caps);
        auto                      at = reference::utc("2026-01-05T00:00:00");
        INFO("history " << history << ": " << caps.per_hour << " an hour, " << caps.per_day
                        << " a day");
        for (int arrival = 0; arrival < 300; ++arrival) {
            at += random_step(random);
            INFO("arrival " << arrival);
            REQUIRE(release(windows.place(at)) == naive.place(at));
        }
    }
}
