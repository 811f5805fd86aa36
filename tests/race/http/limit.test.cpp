// SPDX-License-Identifier: BSL-1.0

#include "weir/http/limits.hpp"

#include "catch.hpp"
#include "race/crew.hpp"
#include "reference/http_caller.hpp"
#include "reference/one_client.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using reference::caller;
using reference::t;
using weir::http::limit;
using weir::http::limit_options;
using weir::http::limit_policy;
using weir::http::limit_step;
using weir::http::limit_type;

namespace {

constexpr std::size_t threads = 64;

std::string address(std::size_t round)
{
    return "10." + std::to_string(round / 65'536) + '.' + std::to_string(round / 256 % 256) + '.' +
           std::to_string(round % 256);
}

}  // namespace

TEST_CASE("of 64 threads on the last unit exactly one goes on", "[http][race]")
{
    const auto           policy = GENERATE(limit_policy::sliding, limit_policy::strict);
    weir::http::counters where({.max_keys = 20'000});
    const limit          last({.name = "last", .max = 1, .interval = 60s, .policy = policy}, where);

    std::atomic<int> went_on{0};
    int              wrong = 0;
    race::all_at_once(
        threads, race::many(2'000),
        [&](std::size_t, std::size_t round) {
            const auto   text = address(round);
            const caller who(text);
            went_on += !reference::ask(last, who, t(0));
        },
        [&](std::size_t) { wrong += went_on.exchange(0) != 1; });
    CHECK(wrong == 0);
}

TEST_CASE("of 64 threads on the last place exactly one goes on, and it comes back", "[http][race]")
{
    weir::http::counters where({.max_inflight = 128});
    const limit          last({.name = "last", .type = limit_type::inflight, .max = 1}, where);
    const auto           places = where.places("last", 1, 128);

    std::vector<weir::http::passage> through(threads);
    std::atomic<int>                 went_on{0};
    int                              wrong = 0;
    race::all_at_once(
        threads, race::many(2'000),
        [&](std::size_t thread, std::size_t) {
            const caller who;
            went_on += !last.admit(who.visit(), through[thread], t(0));
        },
        [&](std::size_t) {
            wrong += went_on.exchange(0) != 1 || places->held() != 1;
            for (auto& one : through) one.leave();
            wrong += places->held() != 0;
        });
    CHECK(wrong == 0);
}

TEST_CASE("O40: a thousand reloads while four threads ask give nobody more", "[http][race]")
{
    weir::http::counters where({.max_keys = 100});
    limit_options        options{.name = "site", .max = 10, .interval = 60s};
    options.policy  = limit_policy::fixed;
    const auto make = [&] { return std::make_shared<const limit>(options, where); };
    std::mutex mutex;
    std::shared_ptr<const limit> live = make();
    std::atomic<int>             went_on{0};
    std::atomic<bool>            over{false};
    std::vector<std::thread>     crew;
    for (int i = 0; i < 4; ++i)
        crew.emplace_back([&] {
            while (!over) {
                std::unique_lock turn(mutex);
                const auto       mine = live;
                turn.unlock();
                went_on += !reference::ask(*mine, caller(), t(0));
            }
        });
    for (std::size_t i = 0; i < race::many(1'000); ++i) {
        auto                  next = make();
        const std::lock_guard turn(mutex);
        live = std::move(next);
    }
    over = true;
    for (auto& one : crew) one.join();
    went_on += reference::passed(*live, caller(), 20, t(0));
    CHECK(went_on == 10);
}

TEST_CASE("a log of dry runs loses no count between threads", "[http][race]")
{
    std::mutex             mutex;
    std::uint64_t          told = 0;
    weir::http::shadow_log log("case", "limit", [&](std::string_view line) {
        const auto            skipped = std::stoull(std::string(line.substr(line.rfind('=') + 1)));
        const std::lock_guard turn(mutex);
        told += skipped + (line.starts_with("dry run, the request") ? 1 : 0);
    });
    constexpr std::size_t  crew   = 8;
    const auto             rounds = race::many(5'000);
    race::all_at_once(
        crew, rounds,
        [&](std::size_t thread, std::size_t round) {
            const caller who;
            log.would_refuse(who.visit(), {.status = 429, .reason = "r", .matched = "m"},
                             t(static_cast<std::int64_t>(round)));
            if (thread == 0 && round % 100 == 0) log.flush();
        },
        [](std::size_t) {});
    log.flush();
    CHECK(told == crew * rounds);
    CHECK(log.figures().seen == crew * rounds);
}
