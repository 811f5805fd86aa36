// SPDX-License-Identifier: BSL-1.0

// X15: a process that asks dies at any moment.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>

#include "weir/admit_all.hpp"

#include "proxy.hpp"
#include "scene.hpp"

using namespace faults;

namespace {

constexpr weir::fixed_window brief{.limit = 20, .window = 500ms};

/// Asks in every way there is, until it is killed.
[[noreturn]] void ask_for_ever(const std::string& conninfo)
{
    auto options = hasty(conninfo, "fcrash");
    options.warn = nullptr;
    weir::postgres::store counters(options);
    const limiter         ip("ip", brief, counters), user("user", brief, counters);
    for (int n = 0;; ++n) {
        const auto who  = std::to_string(n % 7);
        const auto made = ip.admit(who);
        user.charge(who, {.cost = 2});
        (void)weir::admit_all({user(who), ip(who)});
        if (n % 2 == 0) ip.give_back(who, made);
        if (n % 5 == 0) (void)user.forget(who);
    }
}

/// No row of those who died that lasts, or is held.
void check_what_is_left()
{
    scratch::session by(cluster().conninfo());
    CHECK(by.must("SELECT count(*) FROM fcrash.counters").number() > 0);
    CHECK(by.must("SELECT count(*) FROM fcrash.counters WHERE recovered_at IS NULL OR recovered_at "
                  "<= 0 OR "
                  "recovered_at > extract(epoch FROM clock_timestamp()) * 1e9 + 2 * 500e6")
              .number() == 0);
    CHECK(within(10s, [&] {
        return by.must("SELECT count(*) FROM pg_locks AS l JOIN pg_class AS c ON c.oid = "
                       "l.relation WHERE "
                       "c.relnamespace = 'fcrash'::regnamespace")
                   .number() == 0;
    }));
    CHECK(within(2 * brief.window + 1s, [&] {
        return by.must("SELECT count(*) FROM fcrash.counters WHERE recovered_at > "
                       "extract(epoch FROM clock_timestamp()) * 1e9")
                   .number() == 0;
    }));
    auto options     = hasty(cluster().conninfo(), "fcrash");
    options.deadline = 20s;
    weir::postgres::store counters(options);
    const limiter         ip("ip", brief, counters), user("user", brief, counters);
    for (int n = 0; n < 7; ++n) {
        CHECK(ip.peek(std::to_string(n)).left == brief.limit);
        CHECK(user.peek(std::to_string(n)).left == brief.limit);
    }
}

}  // namespace

TEST_CASE("processes killed at random moments leave no row that lasts or is held: all fresh after "
          "two windows (X15)",
          "[faults][X15]")
{
    scratch::session(cluster().conninfo()).must(scratch::text_for("fcrash"));
    std::mt19937 random(15);
    for (int round = 0; round < 40; ++round) {
        const auto child = fork();
        if (child == 0) ask_for_ever(cluster().conninfo());
        std::this_thread::sleep_for(20ms + std::chrono::microseconds(random() % 40'000));
        kill(child, SIGKILL);
        int status = 0;
        REQUIRE(waitpid(child, &status, 0) == child);
        REQUIRE(WIFSIGNALED(status));
    }
    check_what_is_left();
}

TEST_CASE(
    "a connection that ends after any number of bytes leaves no row that lasts or is held (X15)",
    "[faults][X15]")
{
    scratch::session(cluster().conninfo()).must(scratch::text_for("fcrash").c_str());
    std::size_t cut = 0;
    {
        proxy between_us(cluster().folder());
        auto  options       = hasty(between_us.conninfo(), "fcrash");
        options.connections = 1;
        weir::postgres::store counters(options);
        const limiter         ip("ip", brief, counters), user("user", brief, counters);
        for (std::size_t bytes = 1; bytes < 400; bytes += 41, ++cut) {  // an answer has about 130
            REQUIRE(comes_back(ip));
            between_us.cut_after(bytes);
            for (int n = 0; n < 4; ++n) {
                const auto who = std::to_string(n);
                (void)(n % 2 == 0 ? ip.admit(who) : weir::admit_all({user(who), ip(who)}));
            }
            between_us.pass();
        }
    }
    CHECK(cut > 8);
    check_what_is_left();
}
