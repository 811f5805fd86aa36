// SPDX-License-Identifier: BSL-1.0

#include "weir/policy/lockout.hpp"

#include <chrono>
#include <cstdint>
#include <vector>

#include "weir/testing/manual_clock.hpp"

#include "catch.hpp"

using namespace std::chrono_literals;
using weir::lockout;

namespace {

constexpr auto start = weir::testing::manual_clock::new_year;

/// One key and what an attacker does to it. Each try that is admitted fails.
struct door {
    lockout        limit = {};
    lockout::state state = {};

    bool try_at(weir::duration after) { return limit.spend(state, 1, 1, start + after) == 1; }
    bool open_at(weir::duration after) const
    {
        return limit.read(state, 1, start + after).left > 0;
    }
    bool free_exactly_at(weir::duration after) const
    {
        return !open_at(after - 1ns) && open_at(after);
    }
    std::uint64_t level_at(weir::duration after) const
    {
        return limit.look(state, start + after).level;
    }
    void tries_at(std::initializer_list<weir::duration> all)
    {
        for (const auto after : all) CHECK(try_at(after));
    }
    void take_back(weir::duration of, weir::duration at)
    {
        limit.give_back(state, 1, start + of + limit.outcome_within, start + at);
    }
};

/// When lockouts begin for somebody who tries whenever the door is open.
std::vector<int> lockouts_of_the_bold(door one, std::size_t count, int& tries)
{
    std::vector<int> begun;
    for (weir::duration at = 0min; begun.size() < count; at += 1min)
        while (one.try_at(at)) {
            ++tries;
            if (!one.open_at(at)) begun.push_back(static_cast<int>(at / 1min));
        }
    return begun;
}

}  // namespace

TEST_CASE("five failures at once close the door for exactly 15 minutes (L12)", "[lockout]")
{
    door one;
    one.tries_at({0s, 0s, 0s, 0s, 0s});
    CHECK_FALSE(one.try_at(0s));
    CHECK_FALSE(one.try_at(14min + 59s));
    CHECK(one.free_exactly_at(15min));
}

TEST_CASE("five more failures close it for 30 minutes (L13)", "[lockout]")
{
    door one;
    one.tries_at({0s, 0s, 0s, 0s, 0s, 15min, 15min, 15min, 15min, 15min});
    CHECK(one.free_exactly_at(45min));
}

TEST_CASE("the lockout runs from the fifth failure and not from the first (L14)", "[lockout]")
{
    door one;
    one.tries_at({0min, 4min, 8min, 12min, 14min + 59s});
    CHECK(one.free_exactly_at(29min + 59s));
}

TEST_CASE("a failure that is exactly a window old does not count any more (L15)", "[lockout]")
{
    door one;
    one.tries_at({0min, 4min, 8min, 12min, 15min});
    CHECK(one.open_at(15min));
    one.tries_at({15min + 6s});
    CHECK(one.free_exactly_at(30min + 6s));
}

TEST_CASE("lengths double up to 24 hours and stay there (L08, L09)", "[lockout]")
{
    door           one;
    weir::duration at = 0s;
    for (const auto minutes : {15, 30, 60, 120, 240, 480, 960, 1440, 1440, 1440}) {
        while (one.try_at(at)) {}
        CHECK(one.free_exactly_at(at + std::chrono::minutes(minutes)));
        at += std::chrono::minutes(minutes);
    }
}

TEST_CASE(
    "who uses every chance is locked out at the minutes of L10, with 35 guesses in the first day "
    "and 65 in the first week (L11)",
    "[lockout]")
{
    int tries = 0;
    CHECK(lockouts_of_the_bold({}, 13, tries) ==
          std::vector{0, 15, 45, 105, 225, 465, 945, 1905, 3345, 4785, 6225, 7665, 9105});
    CHECK(tries == 65);
    int first_day = 0;
    CHECK(lockouts_of_the_bold({}, 7, first_day).back() < 1440);
    CHECK(first_day == 35);
}

TEST_CASE("one failure every 3 min 45 s never locks one window, and every 3 min 44 s does (L16)",
          "[lockout]")
{
    door slow, fast;
    for (int n = 0; n < 384; ++n) CHECK(slow.try_at(n * 225s));
    int made = 0;
    while (made < 10 && fast.try_at(made * 224s)) ++made;
    CHECK(made == 5);
}

TEST_CASE("failures from before a lockout do not count after it (L17)", "[lockout]")
{
    door one;
    one.tries_at({10min, 10min, 10min, 10min, 10min, 25min, 25min, 25min, 25min});
    CHECK(one.open_at(25min));
}

TEST_CASE("tries during a lockout neither count nor prolong it (O48)", "[lockout]")
{
    door one{.limit = {.failures = 3, .window = 1h, .first = 1h}};
    one.tries_at({0min, 1min, 5min});
    const auto before = one.state;
    CHECK_FALSE(one.try_at(50min));
    CHECK(one.state == before);
    CHECK(one.free_exactly_at(65min));
}

TEST_CASE("a success takes its own place back and no other", "[lockout]")
{
    door one;
    one.tries_at({0s, 1s, 2s, 3s});
    one.take_back(2s, 4s);
    one.tries_at({5s});
    CHECK(one.open_at(5s));
    one.tries_at({6s});
    CHECK(one.free_exactly_at(15min + 6s));
}

TEST_CASE(
    "the last success before the lockout is firm opens the door again, and no lockout has been",
    "[lockout]")
{
    door one;
    one.tries_at({0s, 1s, 2s, 3s, 4s});
    CHECK_FALSE(one.open_at(33s));
    one.take_back(4s, 34s - 1ns);
    CHECK(one.open_at(34s));
    one.tries_at({35s});
    CHECK(one.level_at(35s) == 0);
    CHECK(one.free_exactly_at(15min + 35s));
}

TEST_CASE("a claim that is 30 s old without an outcome is a failure that nothing takes back",
          "[lockout]")
{
    door one;
    one.tries_at({0s, 0s, 0s, 0s, 0s});
    one.take_back(0s, 30s);
    CHECK(one.free_exactly_at(15min));
}

TEST_CASE("the level falls by one for each quiet period, to 0 after 8 quiet days of 7 (L19)",
          "[lockout]")
{
    door one;
    for (int n = 0; n < 5; ++n) one.try_at(0s);
    CHECK(one.level_at(0s) == 0);
    CHECK(one.level_at(15min) == 1);
    CHECK(one.level_at(15min + 7 * 24h - 1s) == 1);
    CHECK(one.level_at(15min + 7 * 24h) == 0);
    CHECK(one.level_at(8 * 24h) == 0);

    for (const auto at : {15min, 45min})
        for (int n = 0; n < 5; ++n) one.try_at(at);
    const auto end = 105min;
    CHECK(one.level_at(end) == 3);
    CHECK(one.level_at(end + 7 * 24h) == 2);
    CHECK(one.level_at(end + 14 * 24h - 1s) == 2);
    CHECK(one.level_at(end + 21 * 24h) == 0);
    CHECK(one.limit.recovered_at(one.state) == start + end + 21 * 24h);
}

TEST_CASE("a random part makes a lockout longer by up to so many hundredths and never shorter",
          "[lockout]")
{
    std::vector<weir::duration> lengths;
    for (int n = 0; n < 1'000; ++n) {
        door one{.limit = {.failures = 1, .random_part = 20}};
        REQUIRE(one.try_at(n * 137us));
        const auto wait = one.limit.read(one.state, 1, start + n * 137us).wait;
        REQUIRE((wait >= 15min && wait <= 18min));
        lengths.push_back(wait);
    }
    std::ranges::sort(lengths);
    CHECK(std::unique(lengths.begin(), lengths.end()) - lengths.begin() == 21);
}

TEST_CASE(
    "an instant before the last try is judged at that try, and a trace of a broken clock is not "
    "believed",
    "[lockout]")
{
    door one;
    one.tries_at({1h, 1h, 1h, 1h, 1h});
    CHECK_FALSE(one.open_at(10min));
    CHECK(one.limit.judged_at(one.state, start) == start + 1h);
    CHECK(one.limit.judged_at(one.state, start - 1ns) == start - 1ns);
    CHECK(one.open_at(-1ns));
}

TEST_CASE("another number of failures applies at once to what is counted", "[lockout]")
{
    door one;
    one.tries_at({0min, 1min, 2min, 3min});
    auto fewer  = one;
    fewer.limit = {.failures = 3};
    CHECK(fewer.free_exactly_at(18min));
    auto more  = one;
    more.limit = {.failures = 8};
    CHECK(more.limit.read(more.state, 1, start + 3min).left == 4);
}

TEST_CASE("numbers that make no lockout are named", "[lockout]")
{
    const std::vector<lockout> wrong{{.failures = 0},
                                     {.failures = 22},
                                     {.window = 0s},
                                     {.window = 1h, .first = 15min},
                                     {.first = 48h},
                                     {.longest = 1'000'000h},
                                     {.first = 15min + 1ms},
                                     {.quiet = 0s},
                                     {.quiet = 100'000h},
                                     {.outcome_within = 0s},
                                     {.outcome_within = 16min},
                                     {.random_part = 101},
                                     {.mark = 4'096},
                                     {.grain = 1ns}};
    for (const auto& one : wrong) CHECK(one.complaint().starts_with("lockout: "));
    CHECK(lockout{}.complaint() == "");
    CHECK(lockout{.failures = 21, .window = 24h, .first = 24h, .longest = 24h}.complaint() == "");
}

TEST_CASE(
    "the default window keeps instants in tenths of a second, a day of 20 failures in 4 hours",
    "[lockout]")
{
    STATIC_REQUIRE(lockout{}.grain == 100ms);
    STATIC_REQUIRE(lockout{.failures = 20, .window = 24h}.grain == 4h);
    STATIC_REQUIRE(lockout{.failures = 3, .window = 1h}.grain == 10us);
}
