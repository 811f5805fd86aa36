// SPDX-License-Identifier: BSL-1.0

// Several processes on one schema.

#include <csignal>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "weir/limiter.hpp"

#include "../../../tests/reference/processes.hpp"
#include "catch.hpp"
#include "stores.hpp"

using namespace std::chrono_literals;
using reference::crew;

namespace {

/// What `asks` from each of `threads` are granted in one process.
template <weir::policy Policy>
std::uint64_t granted(weir::postgres::store& counters, const std::string& name, const Policy& limit,
                      const std::string& who, int asks, int threads = 1)
{
    const weir::limiter        one(name, limit, counters);
    std::atomic<std::uint64_t> sum = 0;
    std::vector<std::thread>   crew;
    for (int n = 0; n < threads; ++n)
        crew.emplace_back([&] {
            for (int i = 0; i < asks; ++i) sum += bool(one.admit(who));
        });
    for (auto& thread : crew) thread.join();
    return sum;
}

weir::postgres::store_options small(const scratch::schema& home)
{
    auto options        = scratch::in(home.name());
    options.connections = 1;
    return options;
}

constexpr weir::fixed_window at_most(std::uint64_t limit)
{
    return {.limit = limit, .window = scratch::for_ever};
}

}  // namespace

TEST_CASE("16 processes that all make the schema find one layout in it (X9)", "[postgres]")
{
    std::string alone;
    for (int round = 0; round < 4; ++round) {
        const scratch::database own("layout" + std::to_string(round));
        crew                    all;
        for (int process = 0; process < (round == 0 ? 1 : 16); ++process)
            all.add([&](auto wait) {
                wait();
                weir::postgres::store counters(scratch::in("weir", own.words()));
                return granted(counters, "ip", at_most(5), "one", 2);
            });
        all.start();
        CHECK(all.sum() == (round == 0 ? 2 : 5));
        const auto layout =
            scratch::session(own.words())
                .must("SELECT (SELECT string_agg(proname, ' ' ORDER BY proname) FROM pg_proc WHERE "
                      "pronamespace = 'weir'::regnamespace) || (SELECT string_agg(relname, ' ' "
                      "ORDER BY relname) FROM pg_class WHERE relnamespace = 'weir'::regnamespace) "
                      "|| (SELECT string_agg(name || value, ' ' ORDER BY name) FROM weir.meta)")
                .rows.at(0)
                .at(0)
                .value();
        if (round == 0) alone = layout;
        CHECK(layout == alone);
    }
    CHECK(alone.find("ask_gcra") != std::string::npos);
    CHECK(alone.find("counters") != std::string::npos);
    CHECK(alone.find("version1") != std::string::npos);
}

TEST_CASE("of 8 processes that ask 320 times at once exactly the limit is admitted (F61, F62)",
          "[postgres]")
{
    const scratch::schema home("exact");
    crew                  all;
    for (int process = 0; process < 8; ++process)
        all.add([&](auto wait) {
            weir::postgres::store counters(small(home));
            wait();
            return granted(counters, "ip", at_most(100), "one", 40, 4);
        });
    all.start();
    CHECK(all.sum() == 100);
}

TEST_CASE("no update of 8 processes is lost below the limit (F63, F64)", "[postgres]")
{
    const scratch::schema      home("lost");
    const weir::sliding_window wide{.limit = 7'000, .window = scratch::for_ever};
    crew                       all;
    for (int process = 0; process < 8; ++process)
        all.add([&](auto wait) {
            weir::postgres::store counters(small(home));
            wait();
            return granted(counters, "ip", wide, "one", 25, 4) +
                   granted(counters, "endpoint", wide, "two", 25, 4);
        });
    all.start();
    CHECK(all.sum() == 1'600);
    weir::postgres::store counters(small(home));
    CHECK(weir::limiter("ip", wide, counters).peek("one").left == 7'000 - 800);
    CHECK(weir::limiter("endpoint", wide, counters).peek("two").left == 7'000 - 800);
    CHECK(scratch::session().must("SELECT count(*) FROM " + home / "counters").number() == 2);
}

TEST_CASE("a process that comes later meets what the first has spent (F65, F66)", "[postgres]")
{
    const scratch::schema home("later");
    const auto            spends = [&](const std::string& who, int asks) {
        crew one;
        one.add([&](auto) {
            weir::postgres::store counters(small(home));
            return granted(counters, "ip", weir::gcra{.limit = 3, .window = 24h}, who, asks);
        });
        return one.sum();
    };
    CHECK(spends("e1", 6) == 3);
    CHECK(spends("e1", 1) == 0);
    CHECK(spends("e2", 1) == 1);
}

TEST_CASE(
    "of 16 processes with 8 threads that ask a gcra once, 10 are admitted, 20 times over (O31)",
    "[postgres]")
{
    constexpr int processes = 16, threads = 8, rounds = 20;

    const scratch::schema                                         home("parallel");
    const reference::shared<std::array<std::atomic<int>, rounds>> admitted;
    reference::meeting_of_processes                               barrier(processes * threads);
    crew                                                          all;
    for (int process = 0; process < processes; ++process)
        all.add([&](auto wait) {
            weir::postgres::store    counters(small(home));
            const weir::limiter      one("mail", weir::gcra{.limit = 10, .window = 24h}, counters);
            std::vector<std::thread> here;
            wait();
            for (int thread = 0; thread < threads; ++thread)
                here.emplace_back([&] {
                    for (std::size_t round = 0; round < rounds; ++round) {
                        barrier.wait();
                        (*admitted)[round] += bool(one.admit(std::to_string(round)));
                    }
                });
            for (auto& thread : here) thread.join();
            return 1U;
        });
    all.start();
    CHECK(all.sum() == processes);
    for (const auto& count : *admitted) CHECK(count == 10);
}

TEST_CASE("1000 parallel asks within the limit are counted as 1000, and 10 on 5 places as 5 (O32)",
          "[postgres]")
{
    const scratch::schema home("thousand");
    crew                  all;
    for (int process = 0; process < 4; ++process)
        all.add([&](auto wait) {
            weir::postgres::store counters(small(home));
            wait();
            return granted(counters, "ip", at_most(2'000), "one", 1, 250);
        });
    all.start();
    CHECK(all.sum() == 1'000);
    CHECK(scratch::session().must("SELECT sum(second) FROM " + home / "counters").number() ==
          1'000);

    weir::postgres::store counters(scratch::in(home.name()));
    for (int round = 0; round < 20; ++round)
        CHECK(granted(counters, "few", at_most(5), std::to_string(round), 1, 10) == 5);
}

TEST_CASE("a process killed in the midst of its asks leaves counters that others go on with",
          "[postgres]")
{
    const scratch::schema home("killed");
    const auto            written = "SELECT coalesce(sum(second), 0) FROM " + home / "counters";
    for (int round = 0; round < 5; ++round) {
        crew             all;
        const auto       victim = all.add([&](auto wait) {
            weir::postgres::store counters(small(home));
            wait();
            return granted(counters, "ip", at_most(1'000'000'000), "one", 100'000'000, 4);
        });
        scratch::session by;
        const auto       before = by.must(written).number();
        all.start();
        const auto until = std::chrono::steady_clock::now() + 60s;
        while (by.must(written).number() < before + 200 &&
               std::chrono::steady_clock::now() < until) {}
        kill(victim, SIGKILL);
        CHECK(all.sum() == 0);

        weir::postgres::store counters(small(home));
        const weir::limiter   one("ip", at_most(1'000'000'000), counters);
        const auto            left = [&] {
            // What the dead one had sent may still be counted: its last trip of four asks.
            for (auto seen = one.peek("one").left;;)
                if (const auto next = one.peek("one").left; std::exchange(seen, next) == next)
                    return next;
        }();
        CHECK(left <= 1'000'000'000 - static_cast<std::uint64_t>(before) - 200);
        const auto made = one.admit("one");
        CHECK(made.basis == weir::basis::counted);
        CHECK(made.left < left);
        CHECK(made.left + 6 > left);
    }
}
