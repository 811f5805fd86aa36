// SPDX-License-Identifier: BSL-1.0

// Lockouts in PostgreSQL: the SQL against the policy, the store against memory, a file and an
// oracle that packs nothing, processes at once, kill -9, the operator's list.

#include <csignal>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "weir/signin/guard.hpp"
#include "weir/store/memory.hpp"
#include "weir/testing/manual_clock.hpp"

#include "../../../tests/reference/lockout_oracle.hpp"
#include "../../../tests/reference/processes.hpp"
#include "catch.hpp"
#include "stores.hpp"

#if __has_include("weir/sqlite/store.hpp")
#define WEIR_REPLAY_ON_A_FILE 1
#include "weir/sqlite/store.hpp"
#endif

using namespace std::chrono_literals;
using weir::lockout;
using weir::verb;

namespace {

constexpr auto new_year = weir::testing::manual_clock::new_year;

std::int64_t ticks(weir::instant at) { return at.time_since_epoch().count(); }
std::int64_t whole(weir::duration length) { return length / 1s; }

/// The ten numbers of weir.lockout(…), told here a second time.
std::vector<std::string> numbers_of(const weir::ask<lockout>&          question,
                                    const std::array<std::int64_t, 3>& words, weir::instant at)
{
    const auto& limit = question.limit;
    const auto  most  = static_cast<std::int64_t>(limit.failures + 32 * question.cost) +
                      1'024 * limit.random_part + 131'072 * std::int64_t{limit.mark} +
                      536'870'912 * whole(limit.quiet);
    std::vector<std::int64_t> all{static_cast<std::int64_t>(question.verb), words[0], words[1],
                                  words[2], most};
    if (question.verb == verb::give_back)
        for (const auto number :
             {limit.grain.count(), ticks(question.lapses - limit.outcome_within),
              limit.window.count(), ticks(question.lapses)})
            all.push_back(number);
    else
        for (const auto number :
             {limit.window.count(), whole(limit.first) + 1'073'741'824 * whole(limit.longest),
              static_cast<std::int64_t>(question.times), limit.grain.count()})
            all.push_back(number);
    all.push_back(ticks(at));
    std::vector<std::string> text;
    for (const auto number : all) text.push_back(std::to_string(number));
    return text;
}

lockout::state state_of(const std::array<std::int64_t, 3>& words)
{
    if (words[1] >= 0) return {};
    return {weir::instant(weir::duration(words[0])), static_cast<std::uint64_t>(-1 - words[1]),
            static_cast<std::uint64_t>(words[2])};
}

/// All turn while the test runs, but the last.
std::vector<lockout> quick_lockouts()
{
    return {{.failures       = 5,
             .window         = 20ms,
             .first          = 1s,
             .longest        = 2s,
             .quiet          = 1s,
             .outcome_within = 5ms},
            {.failures       = 3,
             .window         = 1s,
             .first          = 1s,
             .longest        = 1s,
             .quiet          = 1s,
             .outcome_within = 500ms,
             .random_part    = 100},
            {.failures       = 20,
             .window         = 900ms,
             .first          = 1s,
             .longest        = 4s,
             .quiet          = 2s,
             .outcome_within = 1s,
             .mark           = 7},
            {.failures       = 1,
             .window         = 10ms,
             .first          = 1s,
             .longest        = 3s,
             .quiet          = 1s,
             .outcome_within = 10ms},
            {}};
}

weir::postgres::store_options small(const scratch::schema& home)
{
    auto options        = scratch::in(home.name());
    options.connections = 1;
    return options;
}

}  // namespace

TEST_CASE("10500 random asks of lockouts are judged in SQL as by the policy, bit for bit",
          "[postgres][lockout][property]")
{
    const scratch::schema home("lockout_sql");
    scratch::session      by;
    const auto            call = "SELECT first, second, third, recovered_at, granted FROM " +
                      home / "lockout" + "($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    reference::generator random(20'261'130);
    for (const auto& limit : reference::lockouts()) {
        std::array<std::int64_t, 3> words{};
        lockout::state              state;
        reference::lockout_life     life(limit);
        auto                        at = new_year;
        for (std::uint64_t step = 0; step < reference::steps(1'500); ++step) {
            at         = reference::stepped(random, limit, at);
            auto asked = life.next(random);
            if (asked.verb == verb::peek || asked.verb == verb::forget) asked.verb = verb::charge;
            if (asked.verb == verb::charge) asked.cost = 1 + random() % limit.failures;
            const auto    before  = state;
            std::uint64_t granted = 0;
            if (asked.verb == verb::spend)
                granted = limit.spend(state, asked.cost, asked.times, at);
            else if (asked.verb == verb::charge) limit.charge(state, asked.cost, at);
            else limit.give_back(state, asked.cost, asked.lapses, at);

            const auto said = by.must(call, numbers_of(asked, words, at));
            INFO("failures " << limit.failures << ", step " << step);
            for (std::size_t n = 0; n < 3; ++n) words[n] = said.number(0, n);
            REQUIRE(state_of(words) == state);
            REQUIRE(said.number(0, 4) == static_cast<std::int64_t>(granted));
            if (!(state == before))
                REQUIRE(weir::instant(weir::duration(said.number(0, 3))) ==
                        std::max(limit.recovered_at(state), weir::instant()));
            if (asked.verb == verb::spend)
                (void)life.agrees(
                    asked, {.granted = granted, .after = state, .at = limit.judged_at(state, at)},
                    at);
        }
    }
}

TEST_CASE("6000 random asks of lockouts are told by PostgreSQL what memory, a file and a list of "
          "instants tell",
          "[postgres][lockout][property]")
{
    const scratch::schema home("lockout_replay");
    auto                  options = scratch::without_memory(scratch::in(home.name()));
    weir::postgres::store first(options);
    weir::memory_store    memory({.max_keys = 10'000, .seed = {{1, 2}}});
#if defined(WEIR_REPLAY_ON_A_FILE)
    const auto path = std::filesystem::temp_directory_path() /
                      ("weir-lockouts-" + std::to_string(getpid()) + ".db");
    struct tidy {
        std::filesystem::path path;
        ~tidy()
        {
            for (const auto* const end : {"", "-wal", "-shm"})
                std::filesystem::remove(path.string() + end);
        }
    } const tidied{path};
    weir::sqlite::store file(
        {.path = path, .secret = scratch::secret, .deadline = 20s, .patience = 60s});
#endif
    const auto                                        limits = quick_lockouts();
    reference::generator                              random(20'261'130);
    std::vector<std::vector<reference::lockout_life>> lives;
    for (const auto& limit : limits) {
        REQUIRE(limit.complaint() == "");
        lives.emplace_back(16, reference::lockout_life(limit));
    }
    for (std::uint64_t step = 0; step < reference::steps(6'000); ++step) {
        const auto n     = random() % limits.size();
        const auto which = random() % 16;
        const auto name  = std::to_string(n);
        const auto there = first.enrol(name, limits[n]);
        auto       asked = lives[n][which].next(random);
        asked.who        = first.digest(there, std::to_string(which));
        const auto said  = first.answer(there, asked);
        INFO("limit " << n << ", step " << step);
        REQUIRE(said.basis == weir::basis::counted);
        REQUIRE(lives[n][which].agrees(asked, said, said.asked));

        auto* const here = memory.enrol(name, limits[n]);
        asked.who        = memory.digest(here, std::to_string(which));
        auto due         = memory.answer(here, asked, said.asked);
        REQUIRE((said.granted == due.granted && said.after == due.after && said.at == due.at));
#if defined(WEIR_REPLAY_ON_A_FILE)
        const auto kept = file.enrol(name, limits[n]);
        asked.who       = file.digest(kept, std::to_string(which));
        due             = file.answer(kept, asked, said.asked);
        REQUIRE((said.granted == due.granted && said.after == due.after && said.at == due.at));
#endif
    }
}

TEST_CASE("of 200 guesses by 4 processes at once exactly 5 are evaluated, one lockout, 100 times "
          "on PostgreSQL (L21, L22)",
          "[postgres][lockout]")
{
    const scratch::schema                                          home("lockout_exact");
    constexpr std::size_t                                          repeats = 100;
    reference::meeting_of_processes                                barrier(4 * 50);
    const reference::shared<std::array<std::atomic<int>, repeats>> evaluated;
    reference::crew                                                crew;
    for (int process = 0; process < 4; ++process)
        crew.add([&](auto wait) {
            weir::postgres::store    counters(small(home));
            const weir::guard        door("signin", lockout{}, counters);
            std::vector<std::thread> threads;
            wait();
            for (int thread = 0; thread < 50; ++thread)
                threads.emplace_back([&] {
                    for (std::size_t n = 0; n < repeats; ++n) {
                        barrier.wait();
                        auto attempt = door.claim(std::to_string(n));
                        (*evaluated)[n] += bool(attempt);
                        attempt.failed();
                    }
                });
            for (auto& thread : threads) thread.join();
            return std::uint64_t{1};
        });
    crew.start();
    CHECK(crew.sum() == 4);
    for (const auto& count : *evaluated) CHECK(count == 5);

    weir::postgres::store counters(small(home));
    const weir::guard     door("signin", lockout{}, counters);
    const auto            locked = door.locked();
    REQUIRE(locked);
    REQUIRE(locked->size() == repeats);
    for (const auto& one : *locked) {
        const auto started = one.firm_at - 30s;
        REQUIRE((one.level == 0 && one.until == started + 15min));
    }
}

TEST_CASE("a process killed between claim and outcome leaves a failure in PostgreSQL",
          "[postgres][lockout]")
{
    const scratch::schema home("lockout_killed");
    for (std::uint64_t round = 1; round <= 5; ++round) {
        reference::crew crew;
        crew.add([&](auto wait) {
            weir::postgres::store counters(small(home));
            const weir::guard     door("signin", lockout{}, counters);
            auto                  attempt = door.claim("user");
            wait();
            kill(getpid(), SIGKILL);
            attempt.succeeded();
            return std::uint64_t{1};
        });
        crew.start();
        CHECK(crew.sum() == 0);
        weir::postgres::store counters(small(home));
        const weir::guard     door("signin", lockout{}, counters);
        CHECK(door.look("user")->failures == round);
        CHECK(door.look("user")->locked == (round == 5));
    }
}

TEST_CASE("an operator lists what is locked in PostgreSQL and clears it by its digest",
          "[postgres][lockout]")
{
    const scratch::schema home("lockout_list");
    weir::postgres::store counters(scratch::in(home.name()));
    const weir::guard     door("signin", lockout{.failures = 2}, counters,
                               {.tiers = {{.failures = 3, .window = 24h, .first = 24h}}});
    const weir::guard     other("mail", lockout{.failures = 1}, counters);
    const weir::limiter   rate("rate", weir::fixed_window{.limit = 1, .window = 1h}, counters);
    (void)rate.admit("bob");
    (void)other.claim("bob");
    auto first = door.claim("bob"), second = door.claim("bob"), third = door.claim("bob");
    CHECK(first);
    CHECK(second);
    CHECK_FALSE(third);
    CHECK(third.decision().retry_after > 14min);

    auto locked = door.locked();
    REQUIRE(locked);
    REQUIRE(locked->size() == 1);
    CHECK(locked->front().who == door.digest("bob"));
    CHECK(door.clear(locked->front().who));
    CHECK(door.locked()->empty());
    CHECK(door.look("bob")->failures == 0);
    CHECK(door.look("bob", {}, 1)->failures == 2);
    second.succeeded();
    CHECK(door.look("bob", {}, 1)->failures == 1);
    CHECK(other.locked()->size() == 1);
}

TEST_CASE("a schema from before there were lockouts gets what it lacks when a program starts",
          "[postgres][lockout]")
{
    const scratch::schema home("lockout_older");
    {
        scratch::session by;
        for (const auto* const one :
             {"marked(bigint)", "ask_lockout(uuid[], bigint[])", "ask_lockout(uuid, bigint[])"})
            by.run("DROP FUNCTION " + home / one);
    }
    auto options        = scratch::in(home.name());
    options.make_schema = false;
    CHECK_THROWS_AS(weir::postgres::store(options), std::invalid_argument);
    options.make_schema = true;
    weir::postgres::store counters(options);
    const weir::guard     door("signin", lockout{}, counters);
    CHECK(door.claim("bob").decision().basis == weir::basis::counted);
    CHECK(door.locked()->empty());
}
