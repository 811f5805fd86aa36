// SPDX-License-Identifier: BSL-1.0

// The file is away: who asks is told so in time, and the file is found again by itself.

#include <csignal>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "weir/limiter.hpp"
#include "weir/sqlite/store.hpp"
#include "weir/testing/manual_clock.hpp"

#include "catch.hpp"
#include "scratch.hpp"

using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

constexpr auto           at = weir::testing::manual_clock::new_year;
const weir::fixed_window ten{.limit = 10, .window = 1min};

weir::sqlite::store_options hasty(const std::string& path)
{
    auto options     = scratch::in(path);
    options.deadline = 50ms;
    return options;
}

/// Asks until the store answers again; false if it does not within a minute.
template <class Limiter>
bool comes_back(const Limiter& limit)
{
    const auto until = steady_clock::now() + 1min;
    while (limit.admit("back", at).basis != weir::basis::counted)
        if (steady_clock::now() > until) return false;
    return true;
}

}  // namespace

TEST_CASE(
    "while another process holds the file a decision ends by its deadline and tells its basis",
    "[sqlite]")
{
    const scratch::folder folder;
    weir::sqlite::store   counters(hasty(folder / "limits.db"));
    const weir::limiter   closed("closed", ten, counters);
    const weir::limiter   open("open", ten, counters, {.on_outage = weir::fail_open});
    CHECK(comes_back(closed));

    scratch::hand lock(folder / "limits.db");
    REQUIRE(lock.run("BEGIN IMMEDIATE") == SQLITE_OK);
    std::vector<weir::duration> took;
    for (int i = 0; i < 15; ++i) {
        const auto begun = steady_clock::now();
        const auto made  = closed.admit("a", at);
        took.push_back(steady_clock::now() - begun);
        CHECK(!made);
        CHECK(made.basis == weir::basis::store_unavailable);
    }
    std::sort(took.begin(), took.end());
    CHECK(took.front() >= 50ms);
    CHECK(took[took.size() / 2] <
          60ms);  // the median: a busy machine makes some threads wait longer
    CHECK(open.admit("a", at));
    CHECK(open.admit("a", at).basis == weir::basis::store_unavailable);

    lock.run("COMMIT");
    CHECK(comes_back(closed));
    CHECK(closed.peek("a", {}, at).left == 10);  // what ended without an answer was not begun
}

TEST_CASE("many who wait for a file that is held all end by their deadlines", "[sqlite]")
{
    const scratch::folder folder;
    auto                  options = hasty(folder / "limits.db");
    options.waiting               = 4;
    weir::sqlite::store counters(options);
    const weir::limiter limit("ip", ten, counters);
    scratch::hand       lock(folder / "limits.db");
    REQUIRE(lock.run("BEGIN IMMEDIATE") == SQLITE_OK);
    std::vector<std::thread> threads;
    std::vector<int>         unavailable(16);
    const auto               begun = steady_clock::now();
    for (auto& count : unavailable)
        threads.emplace_back(
            [&] { count += limit.admit("a", at).basis == weir::basis::store_unavailable; });
    for (auto& thread : threads) thread.join();
    CHECK(steady_clock::now() - begun < 5s);
    CHECK(unavailable == std::vector<int>(16, 1));
    lock.run("COMMIT");
    CHECK(comes_back(limit));
}

TEST_CASE("a look is answered while another process holds the right to write", "[sqlite]")
{
    const scratch::folder folder;
    weir::sqlite::store   counters(scratch::in(folder / "limits.db"));
    const weir::limiter   limit("ip", ten, counters);
    CHECK(limit.admit("a", {.cost = 4}, at));
    scratch::hand lock(folder / "limits.db");
    REQUIRE(lock.run("BEGIN IMMEDIATE; UPDATE weir_counters SET second = 9") == SQLITE_OK);
    CHECK(limit.peek("a", {}, at).basis == weir::basis::counted);
    CHECK(limit.peek("a", {}, at).left == 6);
}

TEST_CASE("in an outage a local limiter goes on with this process's share, warm", "[sqlite]")
{
    const scratch::folder folder;
    auto                  options = hasty(folder / "limits.db");
    options.deadline              = 200ms;
    weir::sqlite::store counters(options);
    const weir::limiter local("ip", ten, counters, {.on_outage = weir::local(2)});
    CHECK(comes_back(local));
    const auto before = local.peek("back", {}, at).left;
    CHECK(before < 10);

    scratch::hand lock(folder / "limits.db");
    REQUIRE(lock.run("BEGIN IMMEDIATE") == SQLITE_OK);
    CHECK(local.admit("back", at).left == before - 6);  // 5 of the 10 are the other process's
    for (int i = 0; i < 5; ++i) {
        const auto made = local.admit("b", at);
        CHECK(made);
        CHECK(made.basis == weir::basis::local);
    }
    CHECK(!local.admit("b", at));
    CHECK(local.admit("b", at).retry_after == 1min);
    CHECK(local.admit("b", at).limit == 10);
}

TEST_CASE("a file that is put in the place of another one is counted in from then on", "[sqlite]")
{
    const scratch::folder folder;
    const auto            path = folder / "limits.db";
    weir::sqlite::store   counters(scratch::in(path));
    const weir::limiter   limit("ip", ten, counters);
    CHECK(limit.admit("a", {.cost = 10}, at));
    for (const auto* const part : {"", "-wal", "-shm"}) std::filesystem::remove(path + part);
    CHECK(comes_back(limit));
    CHECK(limit.admit("a", at).left == 9);
    CHECK(scratch::hand(path).number("SELECT count(*) FROM weir_counters") == 2);
}

TEST_CASE("a file whose table is gone is an outage and no crash", "[sqlite]")
{
    const scratch::folder folder;
    const auto            path = folder / "limits.db";
    weir::sqlite::store   counters(scratch::in(path));
    const weir::limiter   limit("ip", ten, counters);
    CHECK(limit.admit("a", at));
    scratch::hand(path).run("DROP TABLE weir_counters");
    const auto made = limit.admit("a", at);
    CHECK(!made);
    CHECK(made.basis == weir::basis::store_unavailable);
}

TEST_CASE("a full disk is an outage, spends nothing by halves, and is over when there is room",
          "[sqlite]")
{
    const scratch::folder folder;
    scratch::crew         crew;
    crew.add([&](auto) -> std::uint64_t {
        signal(SIGXFSZ, SIG_IGN);
        weir::sqlite::store counters(scratch::in(folder / "limits.db"));
        const weir::limiter limit("ip", ten, counters);
        if (!limit.admit("a", at)) return 1;
        rlimit room{};
        getrlimit(RLIMIT_FSIZE, &room);
        const auto enough = room.rlim_cur;
        room.rlim_cur     = 0;
        setrlimit(RLIMIT_FSIZE, &room);
        const auto full = limit.admit("a", at);
        room.rlim_cur   = enough;
        setrlimit(RLIMIT_FSIZE, &room);
        if (full || full.basis != weir::basis::store_unavailable) return 2;
        if (!comes_back(limit)) return 3;
        return limit.admit("a", at).left == 8 ? 100 : 4;
    });
    CHECK(crew.sum() == 100);
}

TEST_CASE("no descriptor is left open by stores that were made and gone, or could not be made",
          "[sqlite]")
{
    const scratch::folder folder;
    const auto            open = [] {
        return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
    };
    const auto before = open();
    for (int i = 0; i < 20; ++i) {
        { const weir::sqlite::store counters(scratch::in(folder / "limits.db")); }
        CHECK_THROWS(weir::sqlite::store(scratch::in(folder / "no/such.db")));
    }
    CHECK(open() == before);
}
