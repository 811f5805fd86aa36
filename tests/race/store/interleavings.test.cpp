// SPDX-License-Identifier: BSL-1.0

// The store in the process under many orders of its steps, each given by a seed: every look at a
// slot and every swap of one is a step. The headers are taken in under another namespace, so that
// the tests beside this one keep the functions that they test.

#include "catch.hpp"
#include "race/steps.hpp"

// All that the headers below take in, before two words of it mean something else.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#define weir weir_in_steps
#include "weir/store/slot.hpp"

namespace weir {

inline slot peek_in_steps(const slot& at) noexcept
{
    race::stepper::step();
    return peek(at);
}

inline bool swap_in_steps(slot& at, const slot& expected, const slot& desired) noexcept
{
    race::stepper::step();
    return swap(at, expected, desired);
}

}  // namespace weir

#define peek(...) peek_in_steps(__VA_ARGS__)
#define swap(...) swap_in_steps(__VA_ARGS__)
#include "weir/admit_all.hpp"
#include "weir/limiter.hpp"
#include "weir/store/memory.hpp"

using namespace std::chrono_literals;

namespace {

constexpr weir::instant start{std::chrono::sys_days(std::chrono::year(2026) / 3 / 1)};
constexpr std::size_t   seeds = race::many(20'000), more_seeds = race::many(60'000);

/// The start of what one seed does: so far apart that all of the seed before has recovered.
constexpr weir::instant at_seed(std::size_t seed)
{
    return start + 10s * static_cast<int>(seed);
}

// The first line of a table is that of halves near 0, and the last but one or two that of halves
// near 2^64. Low bits make the tag.
constexpr std::uint64_t far = ~std::uint64_t{0} << 32;

/// A key that nobody had before, with both lines to choose from.
constexpr weir::key fresh(std::uint64_t number)
{
    return {1'000 + number, far};
}

/// Keys of which the even ones stand in the first line, the odd ones in the last: eight fill both.
constexpr weir::key in_way(std::uint64_t number)
{
    return number % 2 == 0 ? weir::key{number, 0} : weir::key{far | number, far};
}

/// A key, those in its way, and how often it was admitted.
template <class Policy>
struct one_key {
    weir::memory_store                        counters{{.max_keys = 64}};
    weir::limiter<Policy, weir::memory_store> per_key;

    std::size_t      count = 0;
    weir::instant    at    = at_seed(0);
    weir::key        who   = fresh(0);
    std::atomic<int> admitted{0}, over{0}, under{0};

    explicit one_key(std::uint64_t limit)
        : per_key("steps", {.limit = limit, .window = 1s}, counters)
    {
    }

    void ask() { admitted += bool(per_key.admit(who, at)); }
    void fill(std::uint64_t keys)
    {
        for (std::uint64_t i = 0; i < keys; ++i) (void)per_key.admit(in_way(i), at);
    }
    /// After some steps that change nothing, so that others are under way.
    void forget_later(const weir::key& other)
    {
        for (auto looks = count % 8; looks > 0; --looks) (void)per_key.peek(other, {}, at);
        (void)per_key.forget(other, at);
    }
    void judge(int most, int least)
    {
        const auto units = admitted.exchange(0);
        over += units > most;
        under += units < least;
        ++count;
        at  = at_seed(count);
        who = fresh(count);
    }
};

}  // namespace

TEMPLATE_TEST_CASE("in no order of steps does a new key get two counters, though slots come free",
                   "[steps]", weir::fixed_window, weir::sliding_window, weir::gcra)
{
    race::stepper     steps;
    one_key<TestType> test(1);
    for (const std::size_t threads : {2U, 3U, 4U}) {
        test.fill(4);
        steps.explore(
            threads, more_seeds,
            [&](std::size_t thread) {
                if (thread == 0) test.forget_later(in_way(0));
                if (thread == 2) test.forget_later(in_way(2));
                test.ask();
            },
            [&](std::size_t) {
                test.judge(1, 1);
                test.fill(4);
            });
    }
    CHECK(test.over == 0);
    CHECK(test.under == 0);
}

TEMPLATE_TEST_CASE("in no order of steps do two keys that claim one slot lose or gain a unit",
                   "[steps]", weir::fixed_window, weir::sliding_window, weir::gcra)
{
    race::stepper     steps;
    one_key<TestType> test(1);
    test.fill(6);
    std::atomic<int> others{0}, wrong{0};
    steps.explore(
        4, seeds,
        [&](std::size_t thread) {
            if (thread == 0) test.forget_later(in_way(0));
            if (thread < 2) return test.ask();
            const weir::key other{test.who.high | 1U << 31, far};
            others += bool(test.per_key.admit(other, test.at));
        },
        [&](std::size_t) {
            wrong += others.exchange(0) != 1;
            test.judge(1, 1);
            test.fill(6);
        });
    CHECK(test.over == 0);
    CHECK(test.under == 0);
    CHECK(wrong == 0);
}

// Three ask, so at most two asks are under way beside the one that makes the counter: each may have
// been counted by the sketch as well.
TEMPLATE_TEST_CASE("in no order of steps is a key that leaves the sketch for a slot admitted over "
                   "its limit",
                   "[steps]", weir::fixed_window, weir::sliding_window, weir::gcra)
{
    race::stepper     steps;
    one_key<TestType> test(3);
    test.fill(8);
    steps.explore(
        4, more_seeds,
        [&](std::size_t thread) {
            if (thread == 0) test.forget_later(in_way(1));
            else for (int i = 0; i < 2; ++i) test.ask();
        },
        [&](std::size_t) {
            test.judge(3, 1);
            test.fill(8);
        });
    CHECK(test.over == 0);
    CHECK(test.under == 0);
}

TEMPLATE_TEST_CASE("in no order of steps does the sketch admit a key over its limit or under it",
                   "[steps]", weir::fixed_window, weir::sliding_window, weir::gcra)
{
    race::stepper     steps;
    one_key<TestType> test(4);
    test.fill(8);
    steps.explore(
        3, seeds,
        [&](std::size_t) {
            for (int i = 0; i < 2; ++i) test.ask();
        },
        [&](std::size_t) {
            test.judge(4, 4);
            test.fill(8);
        });
    CHECK(test.over == 0);
    CHECK(test.under == 0);
}

TEMPLATE_TEST_CASE("in no order of steps are two sets admitted to one place, or both refused",
                   "[steps]", weir::fixed_window, weir::sliding_window, weir::gcra)
{
    race::stepper      steps;
    weir::memory_store counters({.max_keys = 64});
    weir::limiter      a("a", TestType{.limit = 1, .window = 1s}, counters);
    weir::limiter      b("b", TestType{.limit = 1, .window = 1s}, counters);
    std::size_t        now = 0;
    std::atomic<int>   admitted{0}, wrong{0};
    steps.explore(
        2, seeds,
        [&](std::size_t thread) {
            const auto at   = at_seed(now);
            const auto of_a = fresh(now), of_b = weir::key{1, fresh(now).high};
            admitted += thread == 0 ? bool(weir::admit_all({a(of_a), b(of_b)}, at))
                                    : bool(weir::admit_all({b(of_b), a(of_a)}, at));
        },
        [&](std::size_t seed) {
            wrong += admitted.exchange(0) != 1;
            now = seed + 1;
        });
    CHECK(wrong == 0);
}

TEMPLATE_TEST_CASE("in no order of steps does a set that is put back leave a unit spent", "[steps]",
                   weir::fixed_window, weir::sliding_window, weir::gcra)
{
    race::stepper      steps;
    weir::memory_store counters({.max_keys = 64});
    weir::limiter      a("a", TestType{.limit = 3, .window = 1s}, counters);
    weir::limiter      b("b", TestType{.limit = 1, .window = 1s}, counters);
    std::size_t        now = 0;
    bool               set = false, single = false;
    std::size_t        wrong = 0, put_back = 0;
    steps.explore(
        2, seeds,
        [&](std::size_t thread) {
            const auto who = fresh(now);
            const auto of_a = weir::key{1, who.high};
            if (thread == 0) set = bool(weir::admit_all({a(of_a), b(who)}, at_seed(now)));
            else single = bool(b.admit(who, at_seed(now)));
        },
        [&](std::size_t seed) {
            const auto left = a.peek(weir::key{1, fresh(now).high}, {}, at_seed(now)).left;
            wrong += set == single || left != (set ? 2U : 3U);
            put_back += !set;
            now = seed + 1;
        });
    CHECK(wrong == 0);
    CHECK(put_back > 0);
}
