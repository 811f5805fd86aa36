// SPDX-License-Identifier: BSL-1.0

// Spent tokens within transactions of callers, on PostgreSQL.

#include "weir/postgres/spent_tokens.hpp"

#include <barrier>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "caller.hpp"
#include "catch.hpp"
#include "stores.hpp"

using namespace std::chrono_literals;
using scratch::caller;
using weir::token_use;
using weir::postgres::spent_tokens;

namespace {

constexpr weir::instant at = std::chrono::sys_days(std::chrono::days(20'458));

}  // namespace

TEST_CASE("O55: a token used twice in parallel makes one row, 100 repeats", "[postgres][forms]")
{
    const scratch::future_schema home("tokens");
    caller                       db, rival;
    spent_tokens                 spent(db, {.schema = home.name()});
    REQUIRE(db.run("CREATE TABLE " + home.name() + ".rows (token int)"));
    for (std::uint64_t repeat = 0; repeat < 100; ++repeat) {
        std::barrier together(2);
        const auto   post = [&](caller& by) {
            by.run("BEGIN; INSERT INTO " + home.name() + ".rows VALUES (" + std::to_string(repeat) +
                     ")");
            together.arrive_and_wait();
            const bool passes =
                spent.spend(by, {repeat << 50, repeat}, at + 2h, at) == token_use::first;
            by.run(passes ? "COMMIT" : "ROLLBACK");
        };
        std::thread racer([&] { post(rival); });
        post(db);
        racer.join();
    }
    scratch::session eye;
    CHECK(eye.must("SELECT count(*) FROM " + home.name() + ".rows").number() == 100);
    CHECK(eye.must("SELECT count(DISTINCT token) FROM " + home.name() + ".rows").number() == 100);
}

TEST_CASE("O55: what is rolled back does not burn the token, full means refuse, the expired go",
          "[postgres][forms]")
{
    const scratch::future_schema home("tokens_bound");
    caller                       db;
    spent_tokens                 spent(db, {.most = 3, .schema = home.name()});
    const auto spend = [&](std::uint64_t id, weir::instant when, const char* end = "COMMIT") {
        REQUIRE(db.run("BEGIN"));
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
    scratch::session eye;
    CHECK(eye.must("SELECT count(*) FROM " + home.name() + ".spent_tokens").number() == 1);
    CHECK(spent.spend(db, {9, 9}, at, at) == token_use::failed);  // no transaction
    CHECK_THROWS_AS(spent_tokens(db, {.most = 0}), std::invalid_argument);
}
