// SPDX-License-Identifier: BSL-1.0

// Random asks, compared in every figure with a log of admissions after each step: the memory store
// and the slow store, one by one and merged. WEIR_STEPS sets how many; seeds are committed.

#include "weir/limiter.hpp"
#include "weir/store/memory.hpp"

#include "catch.hpp"
#include "reference/oracle.hpp"
#include "reference/random.hpp"
#include "reference/slow_store.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

using namespace std::chrono_literals;

namespace {

using reference::chance;
using reference::oracle;
using reference::random_number;

constexpr weir::instant new_year = std::chrono::sys_days(std::chrono::year(2026) / 1 / 1);

std::int64_t ticks(weir::instant at) { return at.time_since_epoch().count(); }

constexpr std::int64_t none = -1;

/// Empty if the decision says what the oracle does, else the first figure that differs.
template <class Told>
std::string difference(const weir::decision& made, const Told& due)
{
    const auto differs = [](const char* figure, auto is, auto wanted) {
        return std::string(figure) + ' ' + std::to_string(is) + " for " + std::to_string(wanted);
    };
    const auto wait   = made.retry_after ? made.retry_after->count() : none;
    const auto wanted = due.retry_after.value_or(none);
    if (bool(made) != due.admitted) return differs("verdict", bool(made), due.admitted);
    if (made.left != due.left) return differs("left", made.left, due.left);
    if (wait != wanted) return differs("retry_after", wait, wanted);
    if (made.reset_after.count() != due.reset_after)
        return differs("reset_after", made.reset_after.count(), due.reset_after);
    if (ticks(made.at) != due.at) return differs("at", ticks(made.at), due.at);
    return made.basis == weir::basis::counted ? "" : "basis";
}

/// One walk: a key of a limiter on each store, and an oracle. One key a table, since a clock that
/// steps back may find that a neighbour has taken a recovered slot.
template <class Policy>
class walk {
public:
    walk(const Policy& limit, std::uint64_t seed)
        : random_(seed), limit_(limit), fast_("walk", limit, table_), slow_("walk", limit, map_),
          due_(limit)
    {
    }

    /// Takes so many steps; what went wrong, or empty.
    std::string take(int steps)
    {
        for (int step = 0; step < steps; ++step) {
            move_on();
            if (auto wrong = ask(); !wrong.empty())
                return wrong + " at step " + std::to_string(step);
        }
        return "";
    }

private:
    static constexpr std::string_view who = "somebody";

    void move_on()
    {
        const auto length = limit_.window.count();
        const auto into   = ticks(at_) % length;
        const auto by     = [&](std::int64_t least, std::int64_t most) {
            at_ += weir::duration(random_number<std::int64_t>(random_, least, most));
        };
        if (chance(random_, 50)) return;
        if (chance(random_, 50)) by(0, length / 8);
        else if (chance(random_, 30)) by(0, 2 * length);
        else if (chance(random_, 30))
            by(length - into - 1, length - into + 1);  // an edge of windows
        else if (chance(random_, 40)) by(-length / 2, 1);
        else if (chance(random_, 10)) by(-5'400'000'000'000, -3'500'000'000'000);  // about an hour
        else if (chance(random_, 10)) by(0, 500'000'000'000'000);
        else if (wait_) at_ += *wait_ - weir::duration(random_number(random_, 0, 1));
    }

    std::uint64_t cost()
    {
        const auto most = limit_.capacity();
        if (chance(random_, 60)) return 1;
        if (chance(random_, 5)) return 0;
        if (chance(random_, 5)) return most;
        if (chance(random_, 5)) return most + 1;
        if (chance(random_, 2)) return ~std::uint64_t{0};
        return random_number<std::uint64_t>(random_, 1, std::max<std::uint64_t>(most / 2, 1));
    }

    std::string ask()
    {
        const auto dice = random_number(random_, 0, 99);
        if (dice < 50) return admit(cost());
        if (dice < 65) return merged();
        if (dice < 75) return look(cost());
        if (dice < 82) return charge();
        if (dice < 94) return give_back();
        if (dice < 97) return forget();
        return change();
    }

    std::string admit(std::uint64_t cost)
    {
        const auto told = cost == 0 ? due_.peek(0, ticks(at_)) : due_.spend(cost, ticks(at_));
        const auto made = fast_.admit(who, {cost}, at_);
        if (auto wrong = difference(made, told); !wrong.empty()) return "memory: admit: " + wrong;
        if (auto wrong = difference(slow_.admit(who, {cost}, at_), told); !wrong.empty())
            return "slow: admit: " + wrong;
        if (made) made_ = made, given_back_ = false;
        else wait_ = made.retry_after;
        return "";
    }

    std::string look(std::uint64_t cost)
    {
        const auto told = due_.peek(cost, ticks(at_));
        if (auto wrong = difference(fast_.peek(who, {cost}, at_), told); !wrong.empty())
            return "memory: peek: " + wrong;
        if (auto wrong = difference(slow_.peek(who, {cost}, at_), told); !wrong.empty())
            return "slow: peek: " + wrong;
        return "";
    }

    /// Several callers in one ask are told what they would be told in turn; the refused ones, when
    /// they fit if each of those before retries as soon as it may.
    std::string merged()
    {
        const auto units =
            std::min<std::uint64_t>(std::max<std::uint64_t>(cost(), 1), limit_.capacity() + 1);
        const auto              times = random_number<std::uint64_t>(random_, 2, 6);
        const weir::ask<Policy> question{
            .who = fast_.digest(who), .limit = limit_, .cost = units, .times = times};
        const weir::ask<Policy> mapped{
            .who = slow_.digest(who), .limit = limit_, .cost = units, .times = times};
        weir::merged_callers fast(question, table_.answer(table_counters(), question, at_), "walk",
                                  at_);
        weir::merged_callers slow(mapped, map_.answer(map_counters(), mapped, at_), "walk", at_);
        std::optional<oracle<Policy>> retrying;
        auto                          retry_at = ticks(at_);
        for (std::uint64_t i = 0; i < times; ++i) {
            auto told = due_.spend(units, ticks(at_));
            if (!told.admitted) {
                if (!retrying) retrying = due_;
                if (const auto wait = retrying->peek(units, retry_at).retry_after) {
                    retry_at += *wait;
                    retrying->spend(units, retry_at);
                    told.retry_after = retry_at - ticks(at_);
                }
            }
            if (auto wrong = difference(fast.next(), told); !wrong.empty())
                return "memory: merged: " + wrong;
            if (auto wrong = difference(slow.next(), told); !wrong.empty())
                return "slow: merged: " + wrong;
        }
        return look(1);
    }

    std::string charge()
    {
        const auto units = random_number<std::uint64_t>(random_, 1, limit_.capacity() + 2);
        due_.charge(units, ticks(at_));
        fast_.charge(who, {units}, at_), slow_.charge(who, {units}, at_);
        return look(1);
    }

    std::string give_back()
    {
        if (given_back_) return "";
        const auto lapses = ticks(limit_.lapses(made_));
        due_.give_back(made_.cost, lapses, ticks(at_));
        fast_.give_back(who, made_, at_), slow_.give_back(who, made_, at_);
        given_back_ = chance(random_, 70);  // now and then one is given back twice
        return look(1);
    }

    std::string forget()
    {
        due_.forget();
        fast_.forget(who, at_), slow_.forget(who, at_);
        return look(1);
    }

    std::string change()
    {
        auto changed  = limit_;
        changed.limit = random_number<std::uint64_t>(random_, 0, 2 * limit_.limit + 2);
        if constexpr (requires { changed.burst; })
            changed =
                Policy{.limit = changed.limit, .window = limit_.window, .burst = changed.limit};
        if (!fast_.set_limit(changed) || !slow_.set_limit(changed))
            return "the limit was not changed";
        limit_      = changed;
        given_back_ = true;
        due_.set_limit(changed);
        return "";
    }

    auto table_counters() { return table_.enrol("walk", limit_); }
    auto map_counters() { return map_.enrol("walk", limit_); }

    reference::generator                         random_;
    Policy                                       limit_;
    weir::memory_store                           table_{{.max_keys = 1}};
    reference::slow_store                        map_;
    weir::limiter<Policy, weir::memory_store>    fast_;
    weir::limiter<Policy, reference::slow_store> slow_;
    oracle<Policy>                               due_;
    weir::instant                                at_         = new_year;
    weir::decision                               made_       = {};
    bool                                         given_back_ = true;
    std::optional<weir::duration>                wait_       = {};
};

template <class Policy>
Policy some_limit(reference::generator& random)
{
    constexpr std::array<weir::duration, 8> windows{10ms, 100ms, 1s, 7s, 10s, 60s, 1h, 24h};
    const auto window = windows[random_number<std::size_t>(random, 0, windows.size() - 1)];
    const auto limit  = random_number<std::uint64_t>(random, 0, chance(random, 80) ? 6 : 40);
    if constexpr (requires(Policy p) { p.burst; }) {
        if (limit > 0 && chance(random, 30))
            return weir::gcra::at_most(limit, window,
                                       {.burst = random_number<std::uint64_t>(random, 1, limit)});
        return {.limit  = limit,
                .window = window,
                .burst =
                    std::max<std::uint64_t>(limit, random_number<std::uint64_t>(random, 1, 9))};
    } else return {.limit = limit, .window = window};
}

template <class Policy>
void compare(std::uint64_t first_seed)
{
    constexpr int steps_a_walk = 500;
    const auto    walks        = reference::steps(1'000'000) / steps_a_walk / 3 + 1;
    for (std::uint64_t seed = first_seed; seed < first_seed + walks; ++seed) {
        reference::generator random(seed);
        const auto           limit = some_limit<Policy>(random);
        const auto           wrong = walk<Policy>(limit, seed).take(steps_a_walk);
        INFO("seed " << seed << ", limit " << limit.limit << ", window " << limit.window.count());
        REQUIRE(wrong == "");
    }
}

}  // namespace

TEST_CASE("fixed_window on both stores says what a log of admissions says", "[oracle]")
{
    compare<weir::fixed_window>(10'000'000);
}

TEST_CASE("sliding_window on both stores says what a log of admissions says", "[oracle]")
{
    compare<weir::sliding_window>(20'000'000);
}

TEST_CASE("gcra on both stores says what a log of admissions says", "[oracle]")
{
    compare<weir::gcra>(30'000'000);
}
