// SPDX-License-Identifier: BSL-1.0

// Several processes on one file.

#include <csignal>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "weir/limiter.hpp"
#include "weir/sqlite/store.hpp"
#include "weir/testing/manual_clock.hpp"

#include "catch.hpp"
#include "scratch.hpp"

using namespace std::chrono_literals;

namespace {

constexpr auto at = weir::testing::manual_clock::new_year;

/// What `asks` from each of `threads` are granted in one process.
template <weir::policy Policy>
std::uint64_t granted(weir::sqlite::store& counters, const std::string& name, const Policy& limit,
                      const std::string& who, int asks, int threads = 1)
{
    const weir::limiter              one(name, limit, counters);
    std::vector<std::uint64_t>       sums(static_cast<std::size_t>(threads));
    std::vector<std::thread>         crew;
    for (auto& sum : sums)
        crew.emplace_back([&] {
            for (int i = 0; i < asks; ++i) sum += bool(one.admit(who, at));
        });
    std::uint64_t all = 0;
    for (auto& thread : crew) thread.join();
    for (const auto sum : sums) all += sum;
    return all;
}

}  // namespace

TEST_CASE("of 8 processes with 4 threads each exactly the limit is admitted (F61, F62)", "[sqlite]")
{
    const scratch::folder folder;
    scratch::crew         crew;
    for (int process = 0; process < 8; ++process)
        crew.add([&](auto wait) {
            weir::sqlite::store counters(scratch::in(folder / "limits.db"));
            wait();
            return granted(counters, "ip", weir::fixed_window{.limit = 1'000, .window = 1min},
                           "one", 100, 4);
        });
    crew.start();
    CHECK(crew.sum() == 1'000);
}

TEST_CASE("no update of 8 processes is lost below the limit (F63, F64)", "[sqlite]")
{
    const scratch::folder      folder;
    const weir::sliding_window limit{.limit = 100'000, .window = 1min};
    scratch::crew              crew;
    for (int process = 0; process < 8; ++process)
        crew.add([&](auto wait) {
            weir::sqlite::store counters(scratch::in(folder / "limits.db"));
            wait();
            return granted(counters, "ip", limit, "one", 100) +
                   granted(counters, "endpoint", limit, "two", 100);
        });
    crew.start();
    CHECK(crew.sum() == 1'600);
    weir::sqlite::store counters(scratch::in(folder / "limits.db"));
    CHECK(weir::limiter("ip", limit, counters).peek("one", {}, at).left == 100'000 - 800);
    CHECK(weir::limiter("endpoint", limit, counters).peek("two", {}, at).left == 100'000 - 800);
    CHECK(scratch::hand(folder / "limits.db").number("SELECT count(*) FROM weir_counters") == 2);
}

TEST_CASE("a process that comes later meets what the first has spent (F65, F66)", "[sqlite]")
{
    const scratch::folder folder;
    const weir::gcra      three{.limit = 3, .window = 1min};
    const auto            spends = [&](const std::string& who, int asks) {
        scratch::crew crew;
        crew.add([&](auto) {
            weir::sqlite::store counters(scratch::in(folder / "limits.db"));
            return granted(counters, "ip", three, who, asks);
        });
        return crew.sum();
    };
    CHECK(spends("e1", 6) == 3);
    CHECK(spends("e1", 1) == 0);
    CHECK(spends("e2", 1) == 1);
}

TEST_CASE("8 processes that all make the file find one layout in it", "[sqlite]")
{
    for (int round = 0; round < 5; ++round) {
        const scratch::folder folder;
        scratch::crew         crew;
        for (int process = 0; process < 8; ++process)
            crew.add([&](auto wait) {
                wait();
                weir::sqlite::store counters(scratch::in(folder / "limits.db"));
                return granted(counters, "ip", weir::fixed_window{.limit = 5, .window = 1min},
                               "one", 2);
            });
        crew.start();
        CHECK(crew.sum() == 5);
        CHECK(scratch::hand(folder / "limits.db").number("SELECT count(*) FROM weir_meta") == 2);
    }
}

TEST_CASE("a process killed in the midst of its asks leaves a file that others go on with",
          "[sqlite]")
{
    const scratch::folder    folder;
    const auto               path = folder / "limits.db";
    const weir::fixed_window limit{.limit = 1'000'000, .window = 1min};
    { const weir::sqlite::store counters(scratch::in(path)); }
    for (int round = 0; round < 5; ++round) {
        scratch::crew crew;
        const auto    victim = crew.add([&](auto wait) {
            weir::sqlite::store counters(scratch::in(path));
            wait();
            return granted(counters, "ip", limit, "one", 10'000'000, 2);
        });
        crew.start();
        const auto written = "SELECT ifnull(sum(second), 0) FROM weir_counters";
        const auto before  = scratch::hand(path).number(written);
        for (scratch::hand eye(path); eye.number(written) < before + 50;) std::this_thread::yield();
        kill(victim, SIGKILL);
        CHECK(crew.sum() == 0);
        CHECK(scratch::hand(path).number(
                  "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'") == 1);

        weir::sqlite::store counters(scratch::in(path));
        const weir::limiter one("ip", limit, counters);
        const auto          left = one.peek("one", {}, at).left;
        CHECK(left <= 1'000'000 - static_cast<std::uint64_t>(before) - 50);
        CHECK(one.admit("one", at).left == left - 1);
    }
}
