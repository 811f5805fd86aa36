// SPDX-License-Identifier: BSL-1.0

#include "weir/limiter.hpp"

#include "catch.hpp"
#include "race/crew.hpp"
#include "weir/admit_all.hpp"
#include "weir/store/memory.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>

using namespace std::chrono_literals;

namespace {

constexpr weir::instant start{std::chrono::sys_days(std::chrono::year(2026) / 3 / 1)};

constexpr weir::instant at_round(std::size_t round)
{
    return start + 10s * static_cast<int>(round);
}

}  // namespace

TEMPLATE_TEST_CASE("two sets at once for the last places of both limits: one is admitted, and the "
                   "other spends nothing",
                   "[admit_all]", weir::fixed_window, weir::sliding_window, weir::gcra)
{
    weir::memory_store counters({.max_keys = 64});
    weir::limiter      a("a", TestType{.limit = 2, .window = 1s}, counters);
    weir::limiter      b("b", TestType{.limit = 2, .window = 1s}, counters);
    std::atomic<int>   admitted{0}, wrong{0};
    const auto         leave_one = [&](std::size_t round) {
        const auto who = std::to_string(round);
        a.charge(who, {}, at_round(round));
        b.charge(who, {}, at_round(round));
    };
    leave_one(0);
    race::all_at_once(
        2, race::many(200'000),
        [&](std::size_t thread, std::size_t round) {
            const auto who = std::to_string(round);
            const auto at  = at_round(round);
            admitted += thread == 0 ? bool(weir::admit_all({a(who), b(who)}, at))
                                    : bool(weir::admit_all({b(who), a(who)}, at));
        },
        [&](std::size_t round) {
            wrong += admitted.exchange(0) != 1;
            leave_one(round + 1);
        });
    CHECK(wrong == 0);
}

// The set may have to put back what it took of the first limit when the second is gone: then the
// counters must read as if it had never asked.
TEMPLATE_TEST_CASE("a set that loses its last place to a single ask leaves no unit spent",
                   "[admit_all]", weir::fixed_window, weir::sliding_window, weir::gcra)
{
    weir::memory_store counters({.max_keys = 64});
    weir::limiter      a("a", TestType{.limit = 3, .window = 1s}, counters);
    weir::limiter      b("b", TestType{.limit = 1, .window = 1s}, counters);
    std::atomic<int>   set{0}, single{0}, both{0}, neither{0}, torn{0};
    race::all_at_once(
        2, race::many(200'000),
        [&](std::size_t thread, std::size_t round) {
            const auto who = std::to_string(round);
            const auto at  = at_round(round);
            if (thread == 0) set = bool(weir::admit_all({a(who), b(who)}, at));
            else single = bool(b.admit(who, at));
        },
        [&](std::size_t round) {
            both += set != 0 && single != 0;
            neither += set == 0 && single == 0;
            const auto left = a.peek(std::to_string(round), {}, at_round(round)).left;
            torn += left != (set != 0 ? 2U : 3U);
        });
    CHECK(both == 0);
    CHECK(neither == 0);
    CHECK(torn == 0);
}

TEMPLATE_TEST_CASE("a limit that changes while asked is one of the two in every decision, and "
                   "their sum is within both",
                   "[limiter]", weir::fixed_window, weir::sliding_window, weir::gcra)
{
    constexpr TestType small{.limit = 5, .window = 1s}, large{.limit = 10, .window = 1s};
    weir::memory_store counters({.max_keys = 64});
    weir::limiter      per_key("changing", large, counters);
    std::atomic<int>   admitted{0}, wrong{0};
    race::all_at_once(
        4, race::many(20'000),
        [&](std::size_t thread, std::size_t round) {
            const auto who = std::to_string(round);
            for (int i = 0; i < 20; ++i) {
                if (thread == 0) {
                    wrong += !per_key.set_limit(i % 2 == 0 ? small : large);
                    continue;
                }
                const auto made = per_key.admit(who, at_round(round));
                admitted += bool(made);
                wrong += (made.limit != 5 && made.limit != 10) || made.left > made.limit;
            }
        },
        [&](std::size_t) {
            const auto units = admitted.exchange(0);
            wrong += units > 10 || units < 5;
        });
    CHECK(wrong == 0);
}
