// SPDX-License-Identifier: BSL-1.0

// The store behind a pooler that hands out a server session anew for each transaction (O37, X8).

#include <libpq-fe.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "weir/admit_all.hpp"
#include "weir/limiter.hpp"

#include "catch.hpp"
#include "servers.hpp"
#include "stores.hpp"

using namespace std::chrono_literals;

namespace {

constexpr int threads = 8;
constexpr int rounds  = 250;  // of eight decisions each

/// A server whose log tells each statement, and a pooler with two sessions there.
struct scene {
    explicit scene(const std::string& mode, const std::string& name)
        : postgres("postgres", "pg" + name, "log_statement=all synchronous_commit=off"),
          pooler("pgbouncer", "pb" + name, postgres.folder() + " pool_mode=" + mode)
    {
    }

    weir::postgres::store_options options() const
    {
        auto made     = scratch::without_memory(scratch::in("weir"));
        made.conninfo = pooler.conninfo();
        made.keep     = {};
        return made;
    }

    /// One value, asked for beside the pooler.
    std::int64_t number(const std::string& sql) const
    {
        auto* const db    = PQconnectdb(postgres.conninfo().c_str());
        auto* const made  = PQexec(db, sql.c_str());
        const auto  found = PQntuples(made) > 0 ? std::stoll(PQgetvalue(made, 0, 0)) : -1;
        PQclear(made);
        PQfinish(db);
        return found;
    }

    scratch::server postgres;
    scratch::server pooler;
};

/// Each of many threads does all that a store can do, again and again; what comes of it must be
/// exact.
void use(weir::postgres::store& counters)
{
    const weir::fixed_window wide{.limit = 1'000'000, .window = scratch::for_ever};
    const weir::limiter hot("hot", weir::fixed_window{.limit = 1'500, .window = scratch::for_ever},
                            counters);
    const weir::limiter debts("debts", wide, counters), back("back", wide, counters),
        sets("sets", wide, counters), gone("gone", wide, counters);
    const weir::limiter sliding(
        "sliding", weir::sliding_window{.limit = 5'000, .window = 24h * 3'650}, counters);
    const weir::limiter brief("brief", weir::gcra{.limit = 1, .window = 1ms}, counters);

    std::atomic<int>         admitted = 0, wrong = 0;
    std::vector<std::thread> crew;
    for (int thread = 0; thread < threads; ++thread)
        crew.emplace_back([&, thread] {
            const auto note = [&](const weir::decision& made) {
                wrong += made.basis != weir::basis::counted;
                return bool(made);
            };
            const auto mine = std::to_string(thread);
            for (int n = 0; n < rounds; ++n) {
                admitted += note(hot.admit("all"));
                debts.charge("all", {.cost = 2});
                const auto taken = back.admit("all");
                wrong += !note(taken);
                back.give_back("all", taken);
                wrong +=
                    !note(n % 2 == 0 ? weir::admit_all({sets("a"), sliding("all"), sets("b")})
                                     : weir::admit_all({sets("b"), sets("a"), sliding("all")}));
                wrong += !note(gone.admit(mine));
                wrong += gone.peek(mine).left != wide.limit - 1;
                wrong += !gone.forget(mine);
                note(brief.admit(mine + std::to_string(n)));  // rows to be swept
            }
        });
    for (auto& one : crew) one.join();
    CHECK(wrong == 0);
    CHECK(admitted == 1'500);
    CHECK(hot.peek("all").left == 0);
    CHECK(debts.peek("all").left == wide.limit - 2 * threads * rounds);
    CHECK(back.peek("all").left == wide.limit);
    CHECK(sets.peek("a").left == wide.limit - threads * rounds);
    CHECK(sets.peek("b").left == wide.limit - threads * rounds);
    CHECK(sliding.peek("all").left == 5'000 - threads * rounds);
}

}  // namespace

TEST_CASE(
    "behind pgbouncer with two sessions 8 threads are counted exactly and without an error (O37)",
    "[postgres][pgbouncer]")
{
    for (const std::string mode : {"transaction", "session"}) {
        INFO(mode);
        const scene now(mode, mode.substr(0, 1));
        {
            weir::postgres::store counters(now.options());
            use(counters);
        }
        CHECK(now.number("SELECT count(*) FROM weir.counters") < threads * rounds);  // it swept
        CHECK(now.postgres.log_of("weir.sweep($1").size() > 1);

        std::vector<std::string> errors;  // but that the schema was looked for and not there
        for (const auto& line : now.postgres.log_of("ERROR:"))
            if (line.find("\"weir.meta\" does not exist") == std::string::npos)
                errors.push_back(line);
        CHECK(errors == std::vector<std::string>{});
        CHECK(now.postgres.log_of("FATAL:").empty());
        CHECK(now.pooler.log_of("ERROR").empty());
        CHECK(now.pooler.log_of("WARNING").empty());

        std::vector<std::string> named;
        for (const auto& line : now.postgres.log_of(" execute "))
            if (line.find(" execute <unnamed>: ") == std::string::npos) named.push_back(line);
        CHECK(named == std::vector<std::string>{});
        CHECK(now.postgres.log_of(" execute <unnamed>: ").size() > 1'000);
        CHECK(now.postgres.log_of("pg_advisory_lock").empty());
        CHECK(now.postgres.log_of("LISTEN").empty());
    }
}

TEST_CASE("a store that was told there is no pooler finds out that there is one, and goes on (O37)",
          "[postgres][pgbouncer]")
{
    const scene now("transaction", "n");
    auto        options      = now.options();
    options.named_statements = true;
    options.connections      = 4;  // more than there are sessions
    {
        weir::postgres::store counters(options);
        use(counters);
    }
    {
        weir::postgres::store second(options);  // the sessions have statements of the first
        const weir::limiter   one("ip", weir::gcra{.limit = 2, .window = 24h}, second);
        CHECK(one.admit("a").basis == weir::basis::counted);
        CHECK(one.admit("a").left == 0);
    }
    const auto said = [&](const std::string& words) {
        std::size_t count = 0;
        for (const auto& line : now.postgres.log_of("ERROR:  prepared statement \"weir_"))
            count += line.find(words) != std::string::npos;
        return count;
    };
    CHECK(said("already exists") >= 1);  // 42P05, or else 26000, once for a connection
    CHECK(said("does not exist") >= 1);
    CHECK(said("") <= 2 * options.connections);
}

TEST_CASE("named statements of two schemas behind one pooler are not taken for each other",
          "[postgres][pgbouncer]")
{
    const scene now("transaction", "s");
    auto        options      = now.options();
    options.named_statements = true;
    options.connections      = 1;
    weir::postgres::store first(options);
    options.schema = "other";
    weir::postgres::store    second(options);
    const weir::fixed_window one{.limit = 1, .window = scratch::for_ever};
    const weir::limiter      here("ip", one, first), there("ip", one, second);
    for (int n = 0; n < 50; ++n) {
        const auto who = std::to_string(n);
        CHECK(here.admit(who));
        CHECK(there.admit(who));
    }
    CHECK(now.number("SELECT count(*) FROM weir.counters") == 50);
    CHECK(now.number("SELECT count(*) FROM other.counters") == 50);
}
