// SPDX-License-Identifier: BSL-1.0

// The server is away: who asks is told so in time, and it is found again by itself.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "weir/admit_all.hpp"
#include "weir/limiter.hpp"

#include "catch.hpp"
#include "servers.hpp"
#include "stores.hpp"

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using weir::basis;
using weir::warning;
using weir::postgres::store;

namespace {

std::mutex           hearing;
std::vector<warning> heard;

void hear(warning of)
{
    const std::lock_guard turn(hearing);
    heard.push_back(of);
}

std::vector<warning> heard_so_far()
{
    const std::lock_guard turn(hearing);
    return heard;
}

constexpr weir::fixed_window ten{.limit = 10, .window = scratch::for_ever};

weir::postgres::store_options hasty(const std::string& conninfo, const std::string& schema)
{
    {
        const std::lock_guard turn(hearing);
        heard.clear();
    }
    auto options        = scratch::without_memory(scratch::in(schema));
    options.conninfo    = conninfo;
    options.deadline    = 50ms;
    options.connections = 1;
    options.patience    = 5s;
    options.warn        = &hear;
    return options;
}

/// Asks until the store answers again; false if it does not within a minute.
template <class Limiter>
bool comes_back(const Limiter& limit)
{
    const auto until = steady_clock::now() + 1min;
    while (limit.peek("back").basis != basis::counted) {
        if (steady_clock::now() > until) return false;
        std::this_thread::yield();
    }
    return true;
}

/// How long one ask takes.
template <class Ask>
weir::duration timed(Ask&& ask)
{
    const auto begun = steady_clock::now();
    ask();
    return steady_clock::now() - begun;
}

std::ptrdiff_t open_descriptors()
{
    namespace fs = std::filesystem;
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
}

/// The process at the server that a store of tests has its connection to.
pid_t backend_of(scratch::session& by, const std::string& name)
{
    const auto seen =
        by.must("SELECT pid FROM pg_stat_activity WHERE application_name = $1", {name});
    return static_cast<pid_t>(seen.number());
}

}  // namespace

TEST_CASE(
    "a backend that is stopped costs its caller the deadline, and its connection (X4, O35, O36)",
    "[postgres][outage]")
{
    const scratch::schema home("stopped");
    scratch::session      by;
    const auto            name = "weir_stopped_" + std::to_string(getpid());
    store counters(hasty(scratch::cluster() + " application_name=" + name, home.name()));
    const weir::limiter closed("closed", ten, counters);
    const weir::limiter open("open", ten, counters, {.on_outage = weir::fail_open});
    const weir::limiter share("share", ten, counters, {.on_outage = weir::local(5)});
    REQUIRE(comes_back(closed));
    CHECK(share.admit("a").left == 9);

    const auto descriptors = open_descriptors();
    for (int round = 0; round < 3; ++round) {
        const auto backend = backend_of(by, name);
        REQUIRE(kill(backend, SIGSTOP) == 0);
        const auto went = timed([&] {
            const auto made = round == 0   ? closed.admit("a")
                              : round == 1 ? open.admit("a")
                                           : share.admit("a");
            CHECK(bool(made) == (round > 0));
            CHECK(made.basis == (round < 2 ? basis::store_unavailable : basis::local));
            if (round == 2) CHECK(made.left == 0);  // two of ten, and one was heard of
        });
        CHECK(went >= 49ms);
        CHECK(went <
              2s);  // a busy machine; tests of the deadline's last milliseconds are elsewhere
        CHECK(comes_back(closed));  // over another connection, while that backend still sleeps
        CHECK(backend_of(by, name) > 0);
        kill(backend, SIGCONT);
        const auto gone = steady_clock::now() + 20s;
        while (by.must("SELECT count(*) FROM pg_stat_activity WHERE pid = $1",
                       {std::to_string(backend)})
                       .number() > 0 &&
               steady_clock::now() < gone) {}
        CHECK(by.must("SELECT count(*) FROM pg_stat_activity WHERE pid = $1",
                      {std::to_string(backend)})
                  .number() == 0);
    }
    CHECK(open_descriptors() <= descriptors + 2);
    CHECK(heard_so_far().empty());  // one connection that was lost is no outage
}

TEST_CASE("a server that is frozen is left alone soon, told of once, and found again once (O35)",
          "[postgres][outage]")
{
    const scratch::server own("postgres", "frozen");
    auto                  options = hasty(own.conninfo(), "weir");
    options.connections           = 2;
    store               counters(options);
    const weir::limiter closed("closed", ten, counters);
    const weir::limiter open("open", ten, counters, {.on_outage = weir::fail_open});
    REQUIRE(comes_back(closed));
    CHECK(closed.admit("a").left == 9);
    CHECK(heard_so_far().empty());

    own.freeze();
    std::vector<weir::duration> took;
    int                         unavailable = 0;
    for (int n = 0; n < 100; ++n)
        took.push_back(timed([&] {
            const auto made = closed.admit("a");
            unavailable += !made && made.basis == basis::store_unavailable && !made.retry_after;
        }));
    CHECK(unavailable == 100);
    CHECK(*std::ranges::max_element(took) < 2s);
    std::ranges::sort(took);
    CHECK(took[50] < 10ms);  // the breaker is open: most wait for nothing
    CHECK(heard_so_far() == std::vector{warning::store_away});
    CHECK(open.admit("a"));
    CHECK(!weir::admit_all({closed("a"), open("a")}));
    CHECK(!closed.forget("a"));

    own.thaw();
    const auto since = steady_clock::now();
    CHECK(comes_back(closed));
    CHECK(steady_clock::now() - since < 10s);
    for (int n = 0; heard_so_far().size() < 2 && steady_clock::now() - since < 1min; ++n)
        (void)closed.peek(std::to_string(n));  // on both connections
    CHECK(heard_so_far() == std::vector{warning::store_away, warning::store_back});
    CHECK(closed.peek("a").left <= 9);
    CHECK(closed.peek("a").left >= 8);  // what was under way may be counted; nothing is sent twice
}

TEST_CASE("what was used of a lease is known to the rule that decides in an outage",
          "[postgres][outage][lease]")
{
    const scratch::server own("postgres", "lease");
    store                 counters(hasty(own.conninfo(), "weir"));
    const weir::limiter   limit(
          "ip", weir::leased{weir::fixed_window{.limit = 100, .window = scratch::for_ever}, 20},
          counters, {.on_outage = weir::local(1)});
    REQUIRE(comes_back(limit));
    int admitted = 0;
    for (int leased = 0; leased < 40;) {
        const auto made = limit.admit("a");
        REQUIRE(made);
        ++admitted;
        leased += made.basis == basis::leased;
    }
    own.stop();
    for (int n = 0; n < 200; ++n) admitted += bool(limit.admit("a"));
    CHECK(admitted == 100);
}

TEST_CASE("many who ask a frozen server all end in time, blocked or called back",
          "[postgres][outage]")
{
    const scratch::server own("postgres", "crowd");
    auto                  options = hasty(own.conninfo(), "weir");
    options.waiting               = 16;
    store               counters(options);
    const weir::limiter limit("ip", ten, counters);
    REQUIRE(comes_back(limit));
    own.freeze();
    scratch::countdown       left(64);
    std::atomic<int>         unavailable = 0, late = 0;
    std::vector<std::thread> crew;
    for (int thread = 0; thread < 64; ++thread)
        crew.emplace_back([&, thread] {
            limit.admit_then(std::to_string(thread), [&](const weir::decision& made) {
                unavailable += made.basis == basis::store_unavailable;
                left.one_less();
            });
            late += timed([&] {
                        unavailable +=
                            limit.admit(std::to_string(thread)).basis == basis::store_unavailable;
                    }) > 5s;
        });
    for (auto& one : crew) one.join();
    left.wait();
    CHECK(unavailable == 128);
    CHECK(late == 0);
    own.thaw();
    CHECK(comes_back(limit));
}

TEST_CASE("backends that are ended under load lose no count and double none (X1)",
          "[postgres][outage]")
{
    const scratch::schema home("ended");
    scratch::session      by;
    const auto            name = "weir_ended_" + std::to_string(getpid());
    auto options        = hasty(scratch::cluster() + " application_name=" + name, home.name());
    options.deadline    = 20s;  // whoever is not answered was cut off
    options.connections = 2;
    store                     counters(options);
    const weir::fixed_window  wide{.limit = 1'000'000'000, .window = scratch::for_ever};
    const weir::limiter       limit("ip", wide, counters);
    std::atomic<std::int64_t> admitted = 0, unanswered = 0;
    std::atomic<bool>         enough = false;
    std::vector<std::thread>  crew;
    for (int thread = 0; thread < 8; ++thread)
        crew.emplace_back([&, thread] {
            while (!enough) {
                const auto made = limit.admit(std::to_string(thread % 3));
                ++(made ? admitted : unanswered);
            }
        });
    for (int ended = 0; ended < 30; ++ended) {
        const auto before = admitted.load();
        while (admitted < before + 50 && unanswered < 100'000'000) std::this_thread::yield();
        by.must(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1",
            {name});
    }
    enough = true;
    for (auto& one : crew) one.join();
    const auto counted = by.must("SELECT sum(second) FROM " + home / "counters").number();
    CHECK(counted >= admitted);
    CHECK(counted <= admitted + unanswered);
    CHECK(admitted >= 30 * 50);
}

TEST_CASE("a server that restarts is found again, and its counters with it (X2)",
          "[postgres][outage]")
{
    const scratch::server own("postgres", "restart");
    store                 counters(hasty(own.conninfo(), "weir"));
    const weir::limiter   limit("ip", ten, counters);
    REQUIRE(comes_back(limit));
    CHECK(limit.admit("a").left == 9);
    own.stop();
    for (int n = 0; n < 20; ++n) CHECK(limit.admit("a").basis == basis::store_unavailable);
    CHECK(heard_so_far() == std::vector{warning::store_away});
    own.go_on();
    REQUIRE(comes_back(limit));
    CHECK(limit.peek("a").left == 9);
    CHECK(heard_so_far() == std::vector{warning::store_away, warning::store_back});
}

TEST_CASE("without a server at the start a store is an exception, or an outage if it is to be",
          "[postgres][outage]")
{
    const scratch::server own("postgres", "start");
    own.stop();
    auto options = hasty(own.conninfo(), "weir");
    CHECK_THROWS_AS(store(options), weir::postgres::unreachable);
    CHECK_THROWS_WITH(store(options), Catch::Matchers::Contains("weir::postgres: cannot connect"));

    options.start_unconnected = true;
    const auto begun          = steady_clock::now();
    {
        store               counters(options);
        const weir::limiter limit("ip", ten, counters, {.on_outage = weir::local(2)});
        CHECK(steady_clock::now() - begun < 10s);
        int admitted = 0;
        for (int n = 0; n < 20; ++n) {
            const auto made = limit.admit("a");
            CHECK(made.basis == basis::local);
            admitted += bool(made);
        }
        CHECK(admitted == 5);
        CHECK(heard_so_far() == std::vector{warning::store_away});
        own.go_on();
        REQUIRE(comes_back(limit));
        CHECK(limit.admit("a").left == 9);
        CHECK(heard_so_far() == std::vector{warning::store_away, warning::store_back});
    }
    own.freeze();
    options.patience  = 300ms;
    const auto frozen = steady_clock::now();
    {
        store               counters(options);
        const weir::limiter limit("ip", ten, counters);
        CHECK(limit.admit("a").basis == basis::store_unavailable);
    }
    CHECK(steady_clock::now() - frozen < 10s);  // made and gone, though an attempt is under way
    options.start_unconnected = false;
    CHECK_THROWS_WITH(store(options), Catch::Matchers::Contains("does not answer in time"));
    own.thaw();
}
