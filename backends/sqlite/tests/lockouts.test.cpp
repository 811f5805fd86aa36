// SPDX-License-Identifier: BSL-1.0

// Lockouts in a file, against an oracle that packs nothing, between processes, and after kill -9.

#include <csignal>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "weir/signin/guard.hpp"
#include "weir/sqlite/store.hpp"
#include "weir/store/memory.hpp"
#include "weir/testing/manual_clock.hpp"

#include "../../../tests/reference/lockout_oracle.hpp"
#include "../../../tests/reference/random.hpp"
#include "catch.hpp"
#include "scratch.hpp"

using namespace std::chrono_literals;
using weir::lockout;

namespace {

constexpr auto new_year = weir::testing::manual_clock::new_year;

weir::sqlite::store_options still(const std::string& path)
{
    auto options  = scratch::in(path);
    options.clock = +[] { return new_year; };
    return options;
}

}  // namespace

TEST_CASE(
    "28000 random asks of lockouts are told by a file what memory and a list of instants tell",
    "[sqlite][lockout][property]")
{
    reference::generator random(20'261'130);
    for (const auto& limit : reference::lockouts()) {
        const scratch::folder folder;
        auto                  options = scratch::in(folder / "limits.db");
        options.keep                  = std::chrono::years(200);
        weir::sqlite::store                  file(options);
        weir::memory_store                   memory({.max_keys = 1'000, .seed = {{1, 2}}});
        const auto                           in_file   = file.enrol("door", limit);
        auto* const                          in_memory = memory.enrol("door", limit);
        std::vector<reference::lockout_life> lives(4, reference::lockout_life(limit));
        auto                                 at = new_year;
        for (std::uint64_t step = 0; step < reference::steps(4'000); ++step) {
            at               = reference::stepped(random, limit, at);
            const auto which = random() % lives.size();
            auto       asked = lives[which].next(random);
            asked.who        = file.digest(in_file, std::to_string(which));
            const auto said  = file.answer(in_file, asked, at);
            asked.who        = memory.digest(in_memory, std::to_string(which));
            const auto due   = memory.answer(in_memory, asked, at);
            INFO("failures " << limit.failures << ", step " << step);
            REQUIRE(said.basis == weir::basis::counted);
            REQUIRE((said.granted == due.granted && said.after == due.after && said.at == due.at));
            REQUIRE(lives[which].agrees(asked, said, at));
        }
    }
}

TEST_CASE("of 200 guesses by 4 processes at once exactly 5 are evaluated, one lockout, 100 times "
          "(L21, L22)",
          "[sqlite][lockout]")
{
    const scratch::folder folder;
    const auto            path = folder / "limits.db";
    {
        const weir::sqlite::store made(still(path));
    }
    constexpr std::uint64_t repeats = 100;
    scratch::crew           crew;
    for (int process = 0; process < 4; ++process)
        crew.add([&](auto wait) {
            weir::sqlite::store        counters(still(path));
            const weir::guard          door("signin", lockout{}, counters);
            std::uint64_t              evaluated = 0;
            std::vector<std::uint64_t> sums(50);
            wait();
            std::vector<std::thread> threads;
            for (auto& sum : sums)
                threads.emplace_back([&] {
                    for (std::uint64_t n = 0; n < repeats; ++n) {
                        auto attempt = door.claim(std::to_string(n));
                        sum += bool(attempt);
                        attempt.failed();
                    }
                });
            for (auto& thread : threads) thread.join();
            for (const auto sum : sums) evaluated += sum;
            return evaluated;
        });
    crew.start();
    CHECK(crew.sum() == 5 * repeats);

    weir::sqlite::store counters(still(path));
    const weir::guard   door("signin", lockout{}, counters);
    const auto          locked = door.locked();
    REQUIRE(locked);
    REQUIRE(locked->size() == repeats);
    for (const auto& one : *locked) REQUIRE((one.level == 0 && one.until == new_year + 15min));
}

TEST_CASE("a process killed between claim and outcome leaves a failure", "[sqlite][lockout]")
{
    const scratch::folder folder;
    const auto            path = folder / "limits.db";
    {
        const weir::sqlite::store made(still(path));
    }
    for (std::uint64_t round = 1; round <= 5; ++round) {
        scratch::crew crew;
        const auto    victim = crew.add([&](auto wait) {
            weir::sqlite::store counters(still(path));
            const weir::guard   door("signin", lockout{}, counters);
            auto                attempt = door.claim("user");
            wait();
            kill(getpid(), SIGKILL);
            attempt.succeeded();
            return std::uint64_t{1};
        });
        crew.start();
        CHECK(crew.sum() == 0);
        CHECK(victim > 0);
        weir::sqlite::store counters(still(path));
        const weir::guard   door("signin", lockout{}, counters);
        CHECK(door.look("user")->failures == round);
        CHECK(door.look("user")->locked == (round == 5));
    }
}

TEST_CASE("an operator lists what is locked in a file and clears it by its digest",
          "[sqlite][lockout]")
{
    const scratch::folder folder;
    weir::sqlite::store   counters(still(folder / "limits.db"));
    const weir::guard     door("signin", lockout{.failures = 2}, counters,
                               {.tiers = {{.failures = 3, .window = 24h, .first = 24h}}});
    const weir::guard     other("mail", lockout{.failures = 1}, counters);
    const weir::limiter   rate("rate", weir::fixed_window{.limit = 1, .window = 1h}, counters);
    (void)rate.admit("bob");
    (void)other.claim("bob");
    for (int n = 0; n < 2; ++n) (void)door.claim("bob");
    (void)door.claim("alice");

    auto locked = door.locked();
    REQUIRE(locked);
    REQUIRE(locked->size() == 1);
    CHECK(locked->front().who == door.digest("bob"));
    CHECK(locked->front().until == new_year + 15min);
    CHECK(locked->front().firm_at == new_year + 30s);
    CHECK(door.clear(locked->front().who));
    CHECK(door.locked()->empty());
    CHECK(door.look("bob")->failures == 0);
    CHECK(door.look("bob", new_year, 1)->failures == 2);
    CHECK(door.clear("bob"));
    CHECK(door.look("bob", new_year, 1)->failures == 0);
    CHECK(other.locked()->size() == 1);
}
