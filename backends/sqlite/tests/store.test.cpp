// SPDX-License-Identifier: BSL-1.0

#include "weir/sqlite/store.hpp"

#include <sys/stat.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "weir/admit_all.hpp"
#include "weir/limiter.hpp"
#include "weir/testing/manual_clock.hpp"
#include "weir/testing/store_suite.hpp"

#include "catch.hpp"
#include "scratch.hpp"

using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {

constexpr auto at = weir::testing::manual_clock::new_year;

thread_local std::vector<weir::warning> heard;

std::string content_of(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEMPLATE_TEST_CASE("a file of counters behaves as every store must", "[sqlite]", weir::fixed_window,
                   weir::sliding_window, weir::gcra)
{
    const scratch::folder folder;
    weir::sqlite::store   counters(scratch::in(folder / "limits.db"));
    int                   claims = 0;
    weir::testing::store_suite<TestType>(counters, [&](bool held, std::string_view claim) {
        ++claims;
        INFO(claim);
        CHECK(held);
    });
    CHECK(claims > 20);
}

TEST_CASE("counters outlive the store and the limiter that made them", "[sqlite]")
{
    const scratch::folder    folder;
    const weir::fixed_window three{.limit = 3, .window = 1min};
    {
        weir::sqlite::store counters(scratch::in(folder / "limits.db"));
        const weir::limiter limit("ip", three, counters);
        for (int i = 0; i < 3; ++i) CHECK(limit.admit("198.51.100.4", at));
    }
    weir::sqlite::store counters(scratch::in(folder / "limits.db"));
    const weir::limiter limit("ip", three, counters);
    CHECK(!limit.admit("198.51.100.4", at));
    CHECK(limit.admit("198.51.100.5", at));
}

TEST_CASE("a set of limits on a file is admitted whole or not at all", "[sqlite]")
{
    const scratch::folder folder;
    weir::sqlite::store   counters(scratch::in(folder / "limits.db"));
    const weir::limiter   wide("net", weir::fixed_window{.limit = 10, .window = 1min}, counters);
    const weir::limiter   narrow("ip", weir::gcra{.limit = 2, .window = 1min}, counters);
    for (int i = 0; i < 5; ++i) (void)weir::admit_all({wide("n"), narrow("a")}, at);
    CHECK(wide.peek("n", {}, at).left == 8);
    CHECK(narrow.peek("a", {}, at).left == 0);
}

TEST_CASE("no subject and no name of a limiter is at rest in the file (F54)", "[sqlite]")
{
    const scratch::folder folder;
    const auto            path = folder / "limits.db";
    weir::sqlite::store   counters(scratch::in(path));
    const weir::limiter limit("a-name-of-a-limiter", weir::fixed_window{.limit = 3, .window = 1min},
                              counters);
    (void)limit.admit("198.51.100.4", at);
    const auto all = content_of(path) + content_of(path + "-wal");
    CHECK(all.size() > 4'096);
    CHECK(all.find("198.51.100.4") == std::string::npos);
    CHECK(all.find("a-name-of-a-limiter") == std::string::npos);
    CHECK(all.find("thirty-two bytes") == std::string::npos);
}

TEST_CASE("a refused flood writes nothing", "[sqlite]")
{
    const scratch::folder folder;
    const auto            path = folder / "limits.db";
    weir::sqlite::store   counters(scratch::in(path));
    const weir::limiter   limit("ip", weir::sliding_window{.limit = 1, .window = 1min}, counters);
    CHECK(limit.admit("flood", at));
    const auto before = content_of(path + "-wal");
    for (int i = 0; i < 500; ++i) CHECK(!limit.admit("flood", at));
    CHECK(content_of(path + "-wal") == before);
}

TEST_CASE("recovered rows go, also when all that is asked is refused, and live ones stay (F67-F69)",
          "[sqlite]")
{
    const scratch::folder folder;
    const auto            path    = folder / "limits.db";
    auto                  options = scratch::in(path);
    options.keep                  = 1min;
    weir::sqlite::store counters(options);
    const weir::limiter spent("spent", weir::fixed_window{.limit = 1, .window = 1min}, counters);
    const weir::limiter lasting("lasting", weir::fixed_window{.limit = 1, .window = 24h}, counters);
    for (int i = 0; i < 1'000; ++i) CHECK(spent.admit(std::to_string(i), at));
    for (int i = 0; i < 100; ++i) CHECK(lasting.admit(std::to_string(i), at));

    CHECK(spent.admit("flood", at + 10min));
    for (int i = 0; i < 2'000; ++i) (void)spent.admit("flood", at + 10min + 1s);
    CHECK(scratch::hand(path).number("SELECT count(*) FROM weir_counters") == 101);
    for (int i = 0; i < 100; ++i) CHECK(!lasting.admit(std::to_string(i), at + 23h));
}

TEST_CASE("a flood of new keys cannot grow the file without end", "[sqlite]")
{
    const scratch::folder folder;
    const auto            path    = folder / "limits.db";
    auto                  options = scratch::in(path);
    options.keep                  = 0s;
    weir::sqlite::store counters(options);
    const weir::limiter limit("ip", weir::fixed_window{.limit = 1, .window = 1s}, counters);
    std::int64_t        most = 0;
    for (int i = 0; i < 10'000; ++i) {
        (void)limit.admit(std::to_string(i), at + i * 5ms);  // 200 of them live at a time
        if (i % 500 == 499)
            most = std::max(most, scratch::hand(path).number("SELECT count(*) FROM weir_counters"));
    }
    CHECK(most < 500);
}

TEST_CASE("an operator's shell cannot make a count that is no whole number", "[sqlite]")
{
    const scratch::folder folder;
    const auto            path = folder / "limits.db";
    weir::sqlite::store   counters(scratch::in(path));
    const weir::limiter   limit("ip", weir::fixed_window{.limit = 5, .window = 1min}, counters);
    (void)limit.admit("a", at);
    scratch::hand shell(path);
    CHECK(shell.run("UPDATE weir_counters SET second = second + 9223372036854775807") != SQLITE_OK);
    CHECK(shell.run("UPDATE weir_counters SET first = 1.5") != SQLITE_OK);
    CHECK(shell.run("UPDATE weir_counters SET key = 'text'") != SQLITE_OK);
    CHECK(limit.peek("a", {}, at).left == 4);
}

TEST_CASE("numbers at the ends of what a limit may be stay whole", "[sqlite]")
{
    const scratch::folder folder;
    weir::sqlite::store   counters(scratch::in(folder / "limits.db"));
    const auto            most = weir::sqlite::most_counted;
    const weir::limiter   all("all", weir::fixed_window{.limit = most, .window = 24h}, counters);
    CHECK(all.admit("a", {.cost = most - 1}, at).left == 1);
    CHECK(all.admit("a", at).left == 0);
    for (int i = 0; i < 3; ++i) all.charge("a", {.cost = ~std::uint64_t{0}}, at);
    CHECK(!all.admit("a", at));
    CHECK_THROWS_WITH(weir::limiter("over", weir::fixed_window{.limit = most + 1}, counters),
                      Contains("sqlite holds at most 4611686018427387903"));

    const auto          days = (std::uint64_t{1} << 63) / 86'400'000'000 - 1;
    const weir::limiter sliding("sliding", weir::sliding_window{.limit = days, .window = 24h},
                                counters);
    CHECK(sliding.admit("a", {.cost = days}, at + 1h));
    CHECK(sliding.admit("a", at + 36h).left == days / 2 - 1);
    for (const auto end : {weir::instant::min(), weir::instant::max()}) {
        const weir::limiter edge("edge", weir::gcra{.limit = 2, .window = 24h}, counters);
        CHECK(edge.admit("a", end).basis == weir::basis::counted);
        CHECK(all.admit("edge", end).basis == weir::basis::counted);
        CHECK(sliding.admit("edge", end).basis == weir::basis::counted);
    }
}

TEST_CASE("a shared store without a secret, and one with another secret, are warned about once",
          "[sqlite]")
{
    const scratch::folder folder;
    auto                  options = scratch::in(folder / "limits.db");
    options.warn                  = [](weir::warning of) { heard.push_back(of); };
    heard.clear();
    { const weir::sqlite::store counters(options); }
    { const weir::sqlite::store counters(options); }
    CHECK(heard.empty());
    options.secret = "another one";
    { const weir::sqlite::store counters(options); }
    { const weir::sqlite::store counters(options); }
    CHECK(heard == std::vector{weir::warning::different_secrets});
    options.secret = "";
    { const weir::sqlite::store counters(options); }
    CHECK(heard == std::vector{weir::warning::different_secrets, weir::warning::no_secret,
                               weir::warning::different_secrets});
}

TEST_CASE("a file that cannot be used is told when the store is made, by its name", "[sqlite]")
{
    const scratch::folder folder;
    const auto            made = [&](const std::string& path) {
        auto options     = scratch::in(path);
        options.patience = 50ms;
        const weir::sqlite::store counters(options);
    };
    CHECK_THROWS_WITH(made(""), Contains("path is empty"));
    CHECK_THROWS_WITH(made(folder / "no/such/folder.db"), Contains("folder.db\" cannot be opened"));
    CHECK_THROWS_WITH(made(folder / "."), Contains("cannot be opened"));
    CHECK_THROWS_WITH(made(":memory:"), Contains("cannot hold a write-ahead log"));

    std::ofstream(folder / "text.db") << std::string(5'000, 'x');
    CHECK_THROWS_WITH(made(folder / "text.db"),
                      Contains("text.db\" cannot be used: file is not a database"));

    scratch::hand(folder / "newer.db").run("CREATE TABLE weir_meta (name TEXT PRIMARY KEY, value);"
                                           "INSERT INTO weir_meta VALUES ('version', 2)");
    CHECK_THROWS_WITH(made(folder / "newer.db"),
                      Contains("has layout 2; this version of weir knows layout 1"));
    CHECK(scratch::hand(folder / "newer.db")
              .number("SELECT count(*) FROM sqlite_schema WHERE name = 'weir_counters'") == 0);

    scratch::hand lock(folder / "locked.db");
    lock.run("BEGIN EXCLUSIVE; CREATE TABLE t (x)");
    CHECK_THROWS_WITH(made(folder / "locked.db"),
                      Contains("locked.db\" is kept locked by another process"));
}

TEST_CASE("a file that may only be read is told when the store is made", "[sqlite]")
{
    const scratch::folder folder;
    const auto            path = folder / "limits.db";
    { const weir::sqlite::store counters(scratch::in(path)); }
    chmod(path.c_str(), 0444);
    chmod(std::filesystem::path(path).parent_path().c_str(), 0555);
    scratch::crew crew;
    crew.add([&](auto) -> std::uint64_t {
        if (geteuid() == 0 && seteuid(65'534) != 0) return 0;  // root may write everything
        try {
            const weir::sqlite::store counters(scratch::in(path));
        } catch (const std::invalid_argument& error) {
            return std::string(error.what()).find("cannot be written") != std::string::npos;
        }
        return 0;
    });
    CHECK(crew.sum() == 1);
    chmod(std::filesystem::path(path).parent_path().c_str(), 0755);
}

TEST_CASE("options out of range are told by their names", "[sqlite]")
{
    const scratch::folder folder;
    auto                  options = scratch::in(folder / "limits.db");
    options.deadline              = 0s;
    CHECK_THROWS_WITH(weir::sqlite::store(options), Contains("deadline must be positive"));
    options         = scratch::in(folder / "limits.db");
    options.waiting = 0;
    CHECK_THROWS_WITH(weir::sqlite::store(options), Contains("waiting is 0"));
}

TEST_CASE("the tables of a file that an application keeps beside the counters are left alone",
          "[sqlite]")
{
    const scratch::folder folder;
    const auto            path = folder / "site.db";
    scratch::hand         site(path);
    site.run("CREATE TABLE visitors (name TEXT); INSERT INTO visitors VALUES ('one'); PRAGMA "
             "user_version = 7");
    weir::sqlite::store counters(scratch::in(path));
    const weir::limiter limit("ip", weir::fixed_window{.limit = 1, .window = 1min}, counters);
    CHECK(limit.admit("a", at));
    CHECK(site.number("SELECT count(*) FROM visitors") == 1);
    CHECK(site.number("PRAGMA user_version") == 7);
}

TEST_CASE("with durability::machine the file is told to wait for the disk", "[sqlite]")
{
    const scratch::folder folder;
    auto                  options = scratch::in(folder / "limits.db");
    options.survives              = weir::sqlite::durability::machine;
    weir::sqlite::store counters(options);
    const weir::limiter limit("ip", weir::fixed_window{.limit = 1, .window = 1min}, counters);
    CHECK(limit.admit("a", at));
    CHECK(!limit.admit("a", at));
}
