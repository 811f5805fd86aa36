// SPDX-License-Identifier: BSL-1.0

// Spent tokens within transactions of callers, on SQLite.

#include "weir/sqlite/spent_tokens.hpp"

#include <barrier>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "caller.hpp"
#include "catch.hpp"
#include "scratch.hpp"

using namespace std::chrono_literals;
using scratch::caller;
using weir::token_use;
using weir::sqlite::spent_tokens;

namespace {

constexpr weir::instant at = std::chrono::sys_days(std::chrono::days(20'458));

}  // namespace

TEST_CASE("O55: a token used twice in parallel makes one row of a file, 100 repeats",
          "[sqlite][forms]")
{
    const scratch::folder folder;
    caller                db(folder / "site.db"), rival(folder / "site.db");
    spent_tokens          spent(db);
    REQUIRE(db.run("CREATE TABLE rows (token INTEGER)"));
    for (std::uint64_t repeat = 0; repeat < 100; ++repeat) {
        std::barrier together(2);
        const auto   post = [&](caller& by) {
            together.arrive_and_wait();
            by.run("BEGIN IMMEDIATE; INSERT INTO rows VALUES (" + std::to_string(repeat) + ")");
            const bool passes =
                spent.spend(by, {repeat << 50, repeat}, at + 2h, at) == token_use::first;
            by.run(passes ? "COMMIT" : "ROLLBACK");
        };
        std::thread racer([&] { post(rival); });
        post(db);
        racer.join();
    }
    scratch::hand eye(folder / "site.db");
    CHECK(eye.number("SELECT count(*) FROM rows") == 100);
    CHECK(eye.number("SELECT count(DISTINCT token) FROM rows") == 100);
}

TEST_CASE("O55: on SQLite too a rollback burns no token, full means refuse, the expired go",
          "[sqlite][forms]")
{
    const scratch::folder folder;
    caller                db(folder / "site.db");
    spent_tokens          spent(db, {.most = 3});
    const auto spend = [&](std::uint64_t id, weir::instant when, const char* end = "COMMIT") {
        REQUIRE(db.run("BEGIN IMMEDIATE"));
        const auto use = spent.spend(db, {id, id}, when + 2h, when);
        REQUIRE(db.run(end));
        return use;
    };
    CHECK(spend(1, at, "ROLLBACK") == token_use::first);
    CHECK(spend(1, at) == token_use::first);
    CHECK(spend(1, at) == token_use::again);
    CHECK(spend(2, at) == token_use::first);
    CHECK(spend(3, at) == token_use::first);
    CHECK(spend(4, at) == token_use::full);
    CHECK(spend(2, at) == token_use::again);
    CHECK(spend(4, at + 3h) == token_use::full);
    CHECK(spend(4, at + 3h + 1us) == token_use::first);
    scratch::hand eye(folder / "site.db");
    CHECK(eye.number("SELECT count(*) FROM weir_spent_tokens") == 1);
    CHECK(spent.spend(db, {9, 9}, at, at) == token_use::failed);  // no transaction
    CHECK_THROWS_AS(spent_tokens(db, {.most = 0}), std::invalid_argument);
}
