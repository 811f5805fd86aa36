// SPDX-License-Identifier: BSL-1.0

// The functions of the SQL, as a store and as an operator call them.

#include <libpq-fe.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "../../../tests/reference/random.hpp"
#include "catch.hpp"
#include "in_sql.hpp"
#include "servers.hpp"
#include "session.hpp"

using namespace std::chrono_literals;
using reference::chance;
using reference::random_number;
using scratch::key;
using scratch::schema;
using scratch::session;
using weir::instant;
using weir::verb;

namespace {

constexpr auto hour = 3'600'000'000'000;

/// The numbers of a spend of one unit.
in_sql::six one_of(std::int64_t limit, std::int64_t window = hour)
{
    return {0, limit, window, 1, 1, 0};
}

/// A function that returns five numbers for each key in one array, with a row for each instead.
std::string unfolded(const std::string& call, const std::string& keys)
{
    return "SELECT u.key, o[u.n * 5 - 4], o[u.n * 5 - 3], o[u.n * 5 - 2], o[u.n * 5 - 1], o[u.n * "
           "5]"
           " FROM " +
           call + " AS o, unnest(" + keys + ") WITH ORDINALITY AS u (key, n) ORDER BY u.n";
}

/// A statement that asks for keys of a policy, in the order given; one key by the function for one.
std::string asking(const schema& in, const std::string& policy, const std::vector<unsigned>& keys,
                   const in_sql::six& numbers)
{
    std::vector<std::string>  names;
    std::vector<std::int64_t> all;
    for (const auto n : keys) {
        names.push_back(key(n));
        all.insert(all.end(), numbers.begin(), numbers.end());
    }
    const auto ask = in / ("ask_" + policy), list = "'" + scratch::array_of(names) + "'::uuid[]",
               arguments = ", '" + scratch::array_of(all) + "'::bigint[])";
    if (keys.size() == 1) return unfolded(ask + "('" + names[0] + "'::uuid" + arguments, list);
    return "SELECT * FROM " + ask + "(" + list + arguments;
}

/// A set of unit spends on fixed windows of an hour, one for each (key, limit).
std::string admitting(const schema& in, const std::vector<std::pair<unsigned, int>>& set,
                      const std::string& policy = "fixed_window")
{
    std::vector<std::string>  names, policies;
    std::vector<std::int64_t> all;
    for (const auto& [n, limit] : set) {
        names.push_back(key(n));
        policies.push_back(policy);
        for (const auto number : one_of(limit)) all.push_back(number);
    }
    const auto list = "'" + scratch::array_of(names) + "'::uuid[]";
    return unfolded((in / "admit_set") + "(" + list + ", '" + scratch::array_of(policies) +
                        "'::text[], '" + scratch::array_of(all) + "'::bigint[])",
                    list);
}

std::string with_keys(const schema& in, const std::string& function,
                      const std::vector<unsigned>& keys)
{
    std::vector<std::string> names;
    for (const auto n : keys) names.push_back(key(n));
    return "SELECT * FROM " + (in / function) + "('" + scratch::array_of(names) + "')";
}

std::string sweeping(const schema& in, std::int64_t from, std::int64_t blocks, std::int64_t keep)
{
    return "SELECT * FROM " + (in / "sweep") + "(" + std::to_string(from) + "," +
           std::to_string(blocks) + "," + std::to_string(keep) + ")";
}

std::vector<std::int64_t> granted_of(const scratch::answer& said)
{
    std::vector<std::int64_t> all;
    for (std::size_t row = 0; row < said.rows.size(); ++row) all.push_back(said.number(row, 4));
    return all;
}

std::int64_t rows_of(session& at, const schema& in)
{
    return at.must("SELECT count(*) FROM " + (in / "counters")).number();
}

/// Rows that recovered long ago, and as many that never will while a test runs.
void fill(session& at, const schema& in, unsigned dead, unsigned live)
{
    at.must("INSERT INTO " + (in / "counters") +
            " SELECT ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, 1, 1, 0,"
            " CASE WHEN n < " +
            std::to_string(dead) +
            " THEN 1 ELSE 9000000000000000000 END, 1"
            " FROM generate_series(0, " +
            std::to_string(dead + live - 1) +
            ") AS n"
            " ORDER BY n % 7");
}

/// Counters of one policy, in SQL and as a model that is told the instants of the answers.
template <weir::policy Policy>
class modelled {
public:
    modelled(const schema& in, Policy limit) : in_(in), limit_(limit) {}

    /// One statement for some keys, each with an ask of its own; false if an answer is wrong.
    bool ask(session& at, reference::generator& random, unsigned count, bool only_spends,
             unsigned from = 0)
    {
        std::vector<unsigned> keys;
        while (keys.size() < count)
            if (const auto n = random_number<unsigned>(random, from, from + 39);
                std::find(keys.begin(), keys.end(), n) == keys.end())
                keys.push_back(n);
        std::vector<weir::ask<Policy>> asks;
        std::vector<std::int64_t>      numbers;
        std::vector<std::string>       names;
        for (const auto n : keys) {
            asks.push_back(next(random, n, only_spends));
            const auto six = in_sql::numbers_of(asks.back());
            numbers.insert(numbers.end(), six.begin(), six.end());
            names.push_back(key(n));
        }
        const auto ask   = in_ / (std::string("ask_") + in_sql::name_of<Policy>::value);
        const auto sql   = count == 1
                               ? unfolded(ask + "(($1::uuid[])[1], $2::bigint[])", "$1::uuid[]")
                               : "SELECT * FROM " + ask + "($1::uuid[], $2::bigint[])";
        const auto said  = at.must(sql, {scratch::array_of(names), scratch::array_of(numbers)});
        bool       right = said.rows.size() == keys.size();
        for (std::size_t row = 0; row < said.rows.size(); ++row) {
            const auto place = static_cast<std::size_t>(
                std::find(names.begin(), names.end(), said.rows[row][0]) - names.begin());
            right &= place < keys.size() && agrees(said, row, place, keys, asks[place]);
        }
        return right;
    }

    std::uint64_t fresh_alone = 0, fresh_among = 0, granted = 0, refused = 0;

private:
    weir::ask<Policy> next(reference::generator& random, unsigned n, bool only_spends)
    {
        weir::ask<Policy> question{.limit = limit_};
        question.cost   = random_number<std::uint64_t>(random, 1, limit_.capacity());
        question.times  = random_number<std::uint64_t>(random, 1, 4);
        const auto dice = random() % 10;
        if (only_spends || dice < 7) return question;
        question.verb = dice < 8 ? verb::charge : verb::give_back;
        if (const auto seen = states_.find(n); seen != states_.end())
            question.lapses =
                instant(weir::duration(in_sql::words_of(seen->second)[0])) + limit_.window;
        return question;
    }

    bool agrees(const scratch::answer& said, std::size_t row, std::size_t place,
                const std::vector<unsigned>& keys, const weir::ask<Policy>& question)
    {
        const auto value = [&](std::size_t column) { return said.number(row, column); };
        const auto at    = instant(weir::duration(value(5)));
        const bool fresh = !states_.contains(keys[place]);
        auto&      state = states_[keys[place]];
        auto       due   = in_sql::held(in_sql::step(question, state, at));
        if (question.verb == verb::spend) ++(due > 0 ? granted : refused);
        if (fresh) ++(keys.size() == 1 ? fresh_alone : fresh_among);
        if (fresh && keys.size() > 1) due = -static_cast<std::int64_t>(place) - 1;
        // A sweep may have taken a row that had recovered: then the new one is as fresh.
        const bool swept = !fresh && value(4) == -static_cast<std::int64_t>(place) - 1;
        return in_sql::words{value(1), value(2), value(3)} == in_sql::words_of(state) &&
               (value(4) == due || swept);
    }

    const schema&                              in_;
    Policy                                     limit_;
    std::map<unsigned, typename Policy::state> states_ = {};
};

template <weir::policy Policy>
void one_and_many_agree(Policy limit)
{
    const schema         in(std::string("ask_") + in_sql::name_of<Policy>::value);
    session              at;
    modelled<Policy>     counters(in, limit);
    reference::generator random(20'261'201);
    for (int step = 0; step < 600; ++step) {
        INFO("step " << step);
        const auto count = chance(random, 50) ? 1 : random_number<unsigned>(random, 2, 20);
        REQUIRE(counters.ask(at, random, count, false));
    }
    REQUIRE(counters.fresh_alone > 0);
    REQUIRE(counters.fresh_among > 0);
    REQUIRE(counters.granted >= 40);  // each key at first; the rest is a matter of speed
    REQUIRE(counters.refused > 0);
}

/// Rows of the same stand that another session has changed and not yet committed.
struct turn {
    const char* policy;
    bool        there, many_first, many_second;
    const char* end;
};

std::vector<turn> all_turns()
{
    std::vector<turn> all;
    for (const auto* policy : {"fixed_window", "sliding_window", "gcra"})
        for (int bits = 0; bits < 16; ++bits)
            all.push_back({policy, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0,
                           (bits & 8) != 0 ? "COMMIT" : "ROLLBACK"});
    return all;
}

/// The only statement of a fresh process, run by sixteen that start together. How many failed?
int sixteen_times(const std::string& conninfo, const std::string& text)
{
    int start[2];
    if (pipe(start) != 0) std::abort();
    for (int n = 0; n < 16; ++n) {
        if (fork() != 0) continue;
        close(start[1]);
        auto* const own  = PQconnectdb(conninfo.c_str());
        char        byte = 0;
        if (read(start[0], &byte, 1) != 0) _exit(2);  // until nobody holds the other end any more
        PQsetNoticeProcessor(
            own, [](void*, const char*) {}, nullptr);
        auto* const made = PQexec(own, text.c_str());
        _exit(PQresultStatus(made) == PGRES_COMMAND_OK ? 0 : 1);
    }
    close(start[0]);
    close(start[1]);
    int failed = 0, status = 0;
    while (wait(&status) > 0) failed += status != 0;
    return failed;
}

/// A database of a test's own, for what is the whole cluster's or runs under the schema's own name.
class database {
public:
    explicit database(const std::string& name) : name_(name + "_" + std::to_string(getpid()))
    {
        session().must("CREATE DATABASE " + name_);
    }
    ~database() { session().run("DROP DATABASE " + name_ + " WITH (FORCE)"); }
    database(const database&)            = delete;
    database& operator=(const database&) = delete;

    [[nodiscard]] std::string words() const { return "dbname=" + name_; }

private:
    std::string name_;
};

}  // namespace

TEST_CASE("one key alone and many in one statement are told what fixed_window says", "[postgres]")
{
    one_and_many_agree(weir::fixed_window{.limit = 5, .window = 50ms});
}

TEST_CASE("one key alone and many in one statement are told what sliding_window says", "[postgres]")
{
    one_and_many_agree(weir::sliding_window{.limit = 5, .window = 50ms});
}

TEST_CASE("one key alone and many in one statement are told what gcra says", "[postgres]")
{
    one_and_many_agree(weir::gcra{.limit = 5, .window = 50ms});
}

TEST_CASE("an ask that names a key twice changes nothing", "[postgres]")
{
    const schema in("twice");
    session      at;
    CHECK(at.run(asking(in, "gcra", {1, 2, 1}, {0, hour, 0, 1, 1, 0})).error == "21000");
    CHECK(rows_of(at, in) == 0);
}

TEST_CASE("a set that fits is granted and stays", "[postgres]")
{
    const schema in("set");
    session      at;
    CHECK(granted_of(at.must(admitting(in, {{1, 2}, {2, 1}, {3, 9}}))) ==
          std::vector<std::int64_t>{1, 1, 1});
    CHECK(granted_of(at.must(admitting(in, {{1, 2}, {1, 2}}))) == std::vector<std::int64_t>{1, 0});
    CHECK(granted_of(at.must(admitting(in, {{1, 2}}))) == std::vector<std::int64_t>{1});
    CHECK(rows_of(at, in) == 3);
}

TEST_CASE("O33: a set of which one refuses leaves no trace, and names all that refuse",
          "[postgres]")
{
    const schema in("refused");
    session      at;
    at.must(admitting(in, {{2, 1}, {4, 1}}));
    const auto before = at.must("SELECT * FROM " + (in / "counters") + " ORDER BY key").rows;

    const auto said = at.must(admitting(in, {{1, 9}, {2, 1}, {3, 9}, {4, 1}}));
    CHECK(granted_of(said) == std::vector<std::int64_t>{1, 0, 1, 0});
    CHECK(said.rows.at(1).at(0) == key(2));
    CHECK(said.number(1, 2) == 1);  // the words tell when it will fit
    CHECK(at.must("SELECT * FROM " + (in / "counters") + " ORDER BY key").rows == before);
}

TEST_CASE("a refused set holds no lock, even while its transaction lasts", "[postgres]")
{
    const schema in("lockless");
    session      first, second;
    first.must(admitting(in, {{1, 9}, {2, 1}}));
    first.must("BEGIN");
    CHECK(granted_of(first.must(admitting(in, {{1, 9}, {2, 1}}))) ==
          std::vector<std::int64_t>{1, 0});
    second.must("SET lock_timeout = '1s'");
    CHECK(second.must(asking(in, "fixed_window", {1, 2}, one_of(9))).rows.size() == 2);
    first.must("COMMIT");
}

TEST_CASE("a set finds the function of a policy that this text does not know", "[postgres]")
{
    const schema in("unknown");
    session      at;
    at.must("CREATE FUNCTION " + (in / "\"ask_O'Hara\"") +
            "(who uuid, numbers bigint[]) RETURNS bigint[] LANGUAGE sql AS"
            " 'SELECT ARRAY[1, 2, 3, numbers[2], 5]'");
    CHECK(granted_of(at.must(admitting(in, {{1, 1}, {2, 1}}, "\"O''Hara\""))) ==
          std::vector<std::int64_t>{1, 1});
    CHECK(at.run(admitting(in, {{1, 1}}, "nothing")).error == "42883");
}

TEST_CASE("look tells each key in turn and changes nothing", "[postgres]")
{
    const schema in("look");
    session      at;
    at.must(asking(in, "fixed_window", {2, 5}, one_of(9)));
    const auto before = at.must("SELECT * FROM " + (in / "counters") + " ORDER BY key").rows;
    const auto said   = at.must(with_keys(in, "look", {5, 1, 2, 1}));
    REQUIRE(said.rows.size() == 4);
    CHECK(said.rows[0][0] == key(5));
    CHECK(said.number(0, 2) == 1);
    CHECK(said.rows[0][4] == "0");
    CHECK(said.rows[1][0] == key(1));
    CHECK(said.number(1, 1) == 0);
    CHECK_FALSE(said.rows[1][4].has_value());
    CHECK_FALSE(said.rows[3][4].has_value());
    CHECK(said.number(0, 5) > 1'700'000'000'000'000'000);
    CHECK(at.must("SELECT * FROM " + (in / "counters") + " ORDER BY key").rows == before);
}

TEST_CASE("forget takes the rows of its keys and no other, and tells each key", "[postgres]")
{
    const schema in("forget");
    session      at;
    at.must(asking(in, "fixed_window", {1, 2, 3}, one_of(9)));
    const auto said = at.must(with_keys(in, "forget", {3, 8, 1}));
    REQUIRE(said.rows.size() == 3);
    CHECK(said.rows[1][0] == key(8));
    for (const auto& row : said.rows) CHECK_FALSE(row[4].has_value());
    CHECK(at.must("SELECT key FROM " + (in / "counters")).rows ==
          std::vector<std::vector<std::optional<std::string>>>{{key(2)}});
}

TEST_CASE("forget waits for an ask under way and takes its row too", "[postgres]")
{
    const schema in("forget_waits");
    session      first, second, watcher;
    first.must(asking(in, "fixed_window", {1, 2}, one_of(9)));
    first.must("BEGIN");
    first.must(asking(in, "fixed_window", {1}, one_of(9)));
    second.send(with_keys(in, "forget", {2, 1}));
    CHECK(scratch::waits(watcher, second));
    first.must("COMMIT");
    CHECK(second.finish().error.empty());
    CHECK(rows_of(first, in) == 0);
}

TEST_CASE("a sweep goes round, takes what has recovered and leaves the rest", "[postgres]")
{
    const schema in("sweep");
    session      at;
    fill(at, in, 2'000, 2'000);
    const auto pages =
        at.must("SELECT pg_relation_size('" + (in / "counters") + "') / 8192").number();
    REQUIRE(pages > 20);

    std::int64_t next = 0, deleted = 0, trips = 0;
    do {
        const auto said = at.must(sweeping(in, next, 7, 0));
        next            = said.number(0, 0);
        deleted += said.number(0, 1);
        ++trips;
    } while (next != 0 && trips < 1'000);
    CHECK(trips == (pages + 6) / 7);
    CHECK(deleted == 2'000);
    CHECK(rows_of(at, in) == 2'000);
    CHECK(at.must(sweeping(in, 0, pages, 0)).number() == 0);
    CHECK(at.must(sweeping(in, 0, 1'000'000'000'000, 0)).number() == 0);
    CHECK(at.must(sweeping(in, 4'000'000'000, 10, 0)).number() == 0);
}

TEST_CASE("a sweep keeps a row for as long as it is told to", "[postgres]")
{
    const schema in("keep");
    session      at;
    at.must("INSERT INTO " + (in / "counters") + " SELECT '" + key(1) +
            "', 1, 1, 0, (extract(epoch FROM now()) * 1000000000)::bigint - 60000000000, 1");
    CHECK(at.must(sweeping(in, 0, 10, hour)).number(0, 1) == 0);
    CHECK(at.must(sweeping(in, 0, 10, 1'000'000'000)).number(0, 1) == 1);
}

TEST_CASE("a sweep waits for nobody: it passes over a locked row", "[postgres]")
{
    const schema in("passes");
    session      first, second;
    fill(first, in, 10, 0);
    first.must("BEGIN");
    first.must(asking(in, "fixed_window", {3, 5}, one_of(9)));  // no longer dead, if it commits
    second.must("SET lock_timeout = '1s'");
    CHECK(second.must(sweeping(in, 0, 10, 0)).number(0, 1) == 8);
    first.must("COMMIT");
    CHECK(second.must(sweeping(in, 0, 10, 0)).number(0, 1) == 0);
    CHECK(rows_of(first, in) == 2);
}

TEST_CASE("under a sweep that never stops no counter forgets what it was asked", "[postgres]")
{
    const schema      in("under_sweep");
    std::atomic<bool> done  = false;
    std::int64_t      swept = 0;
    std::thread       sweeper([&] {
        session at;
        // Longer than a statement may wait for its row: it is judged by the time it began.
        while (!done) swept += at.must(sweeping(in, 0, 1'000, 300'000'000)).number(0, 1);
    });
    bool              right = true;
    {
        session                      at;
        modelled<weir::fixed_window> counters(in, {.limit = 5, .window = 5ms});
        reference::generator         random(20'261'202);
        const auto                   began = std::chrono::steady_clock::now();
        at.must("SET synchronous_commit = off");
        // Forty keys at a time, and the same forty again when they have been dead for a while.
        for (auto since = 0ms; right && since < 3s;) {
            const auto from = static_cast<unsigned>(since / 40ms % 20) * 40;
            right = counters.ask(at, random, random_number<unsigned>(random, 1, 8), true, from);
            since = std::chrono::duration_cast<std::chrono::milliseconds>(
                std::chrono::steady_clock::now() - began);
        }
    }
    done = true;
    sweeper.join();
    CHECK(right);
    CHECK(swept > 100);
}

TEST_CASE("a sweep reads the pages that it was given and no other", "[postgres]")
{
    const schema in("range");
    session      at;
    fill(at, in, 100, 0);
    at.must("LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0;"
            "SET auto_explain.log_nested_statements = on; SET auto_explain.log_analyze = off;"
            "SET client_min_messages = log");
    std::string plan;
    at.on_notice([](void* plans, const char* text) { *static_cast<std::string*>(plans) += text; },
                 &plan);
    for (int n = 0; n < 7; ++n) at.must(sweeping(in, 0, 1, hour));
    at.on_notice([](void*, const char*) {}, nullptr);
    CHECK(plan.find("Tid Range Scan") != std::string::npos);
    CHECK(plan.find("Seq Scan") == std::string::npos);
    CHECK(plan.find("Index") == std::string::npos);
}

TEST_CASE("O31, O32: of two sessions on one row the second waits and sees the first's count",
          "[postgres]")
{
    const schema in("turns");
    session      first, second, watcher;
    unsigned     next = 10;
    for (const auto& turn : all_turns()) {
        const auto row  = next++;
        const auto with = [&](bool many) {
            return many ? std::vector<unsigned>{row, next++ + 1'000} : std::vector<unsigned>{row};
        };
        // Two may pass; a refill of the gcra takes an hour.
        const bool        gcra    = std::string(turn.policy) == "gcra";
        const in_sql::six numbers = gcra ? in_sql::six{0, 2 * hour, 0, hour, 1, 0} : one_of(2);
        const auto ask = [&](bool many) { return asking(in, turn.policy, with(many), numbers); };
        INFO(turn.policy << " there " << turn.there << " many " << turn.many_first
                         << turn.many_second << " " << turn.end);
        if (turn.there) first.must(ask(false));

        first.must("BEGIN");
        first.must(ask(turn.many_first));
        second.send(ask(turn.many_second));
        REQUIRE(scratch::waits(watcher, second));
        first.must(turn.end);
        const auto said = second.finish();
        REQUIRE(said.error.empty());

        const auto before = (turn.there ? 1 : 0) + (std::string(turn.end) == "COMMIT" ? 1 : 0);
        const auto place  = said.rows.at(0).at(0) == key(row) ? 0u : 1u;
        const auto count  = [&](std::size_t at) {
            const auto ahead = said.number(at, 1) - said.number(at, 5);
            return gcra ? (ahead + hour - 1) / hour : said.number(at, 2) + said.number(at, 3);
        };
        CHECK(count(place) == std::min(before + 1, 2));
        if (before > 0) CHECK(said.number(place, 4) == (before < 2 ? 1 : 0));
    }
}

TEST_CASE("O38: statements and sets that name their keys in opposite orders never deadlock",
          "[postgres]")
{
    const schema             in("orders");
    std::atomic<int>         failed = 0;
    std::vector<std::thread> crew;
    for (unsigned n = 0; n < 4; ++n)
        crew.emplace_back([&, n] {
            session at;
            for (int step = 0; step < 150; ++step) {
                const auto sql =
                    n == 0   ? asking(in, "fixed_window", {1, 2, 3, 4, 5}, one_of(9'000))
                    : n == 1 ? asking(in, "fixed_window", {5, 4, 3, 2, 1}, one_of(9'000))
                    : n == 2 ? admitting(in, {{1, 9'000}, {3, 9'000}, {5, step % 2 * 9'000}})
                             : with_keys(in, "forget", {4, 2, 5});
                failed += !at.run(sql).error.empty();
            }
        });
    for (auto& one : crew) one.join();
    CHECK(failed == 0);
}

TEST_CASE("more than 99 of 100 updates stay in their page and touch no index", "[postgres]")
{
    // A server of its own: a snapshot that somebody else holds, be it autovacuum's, keeps old
    // versions alive, and there is no room for new ones in their page.
    const scratch::server own("postgres", "hot", "autovacuum=off");
    const schema          in("hot", own.conninfo());
    {
        session at(own.conninfo());
        at.must("SET synchronous_commit = off");
        for (int n = 0; n < 2'500; ++n)
            at.must(asking(in, "fixed_window", {static_cast<unsigned>(n % 50)}, one_of(9'000'000)));
        std::vector<unsigned> all;
        for (unsigned n = 0; n < 50; ++n) all.push_back(n);
        for (int n = 0; n < 50; ++n) at.must(asking(in, "fixed_window", all, one_of(9'000'000)));
    }
    session watcher(own.conninfo());  // counts arrive when a session has ended, or a little later
    scratch::answer seen;
    for (int tries = 0; tries < 10'000; ++tries) {
        seen = watcher.must("SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE"
                            " schemaname = $1 AND relname = 'counters'",
                            {in.name()});
        if (seen.number() >= 4'950) break;
        std::this_thread::sleep_for(1ms);
    }
    CHECK(seen.number(0, 0) == 4'950);
    CHECK(seen.number(0, 1) * 100 > seen.number(0, 0) * 99);
}

TEST_CASE("sixteen processes make the schema at once and all succeed", "[postgres]")
{
    const database own("sixteen");
    const auto     conninfo = scratch::cluster() + " " + own.words();
    for (const auto* name : {"weir", "other", "\"A-b\""}) {
        const auto text = scratch::text_for(name);
        INFO(name);
        CHECK(sixteen_times(conninfo, text) == 0);
        session at(own.words());
        CHECK(at.must(std::string("SELECT value FROM ") + name + ".meta").rows.at(0).at(0) == "1");
    }
    // Its own name is nowhere left in the others.
    session at(own.words());
    CHECK(at.must("SELECT count(*) FROM pg_proc WHERE pronamespace <> 'weir'::regnamespace AND"
                  " prosrc ~ '\\mweir\\M'")
              .number() == 0);
}

TEST_CASE("the installed file is taken by psql, as often as one likes", "[postgres]")
{
    const database own("by_hand");
    const auto     command = "psql -X -q -v ON_ERROR_STOP=1 -f " WEIR_POSTGRES_SQL " '" +
                         scratch::cluster() + " " + own.words() + "' 2>&1";
    for (int times = 0; times < 2; ++times) {
        auto* const shell = popen(command.c_str(), "r");
        std::string out;
        for (int byte = fgetc(shell); byte != EOF; byte = fgetc(shell))
            out += static_cast<char>(byte);
        CHECK(pclose(shell) == 0);
        CHECK(out.empty());
    }
    session at(own.words());
    CHECK(at.must("SELECT relpersistence FROM pg_class WHERE oid = 'weir.counters'::regclass")
              .rows.at(0)
              .at(0) == "p");
}

TEST_CASE("a schema of another version is left as it is", "[postgres]")
{
    const schema in("newer");
    session      at;
    at.must("UPDATE " + (in / "meta") + " SET value = '2'");
    at.must("DROP FUNCTION " + (in / "look") + "(uuid[])");
    CHECK(at.run(scratch::text_for(in.name())).error == "P0001");
    at.run("ROLLBACK");
    CHECK(at.run(with_keys(in, "look", {1})).error == "42883");
}

TEST_CASE("a role that may make nothing can use everything", "[postgres]")
{
    const schema in("grants");
    const auto   role = "weir_guest_" + std::to_string(getpid());
    session      owner;
    owner.must("CREATE ROLE " + role + " LOGIN");
    owner.must("GRANT USAGE ON SCHEMA " + in.name() + " TO " + role);
    owner.must("GRANT SELECT, INSERT, UPDATE, DELETE ON " + (in / "counters") + " TO " + role);
    owner.must("GRANT SELECT, INSERT ON " + (in / "meta") + " TO " + role);
    owner.must("REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA " + in.name() + " FROM PUBLIC");
    owner.must("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA " + in.name() + " TO " + role);
    {
        session guest("user=" + role);
        CHECK(guest.must("SELECT value FROM " + (in / "meta")).rows.size() == 1);
        for (const auto* policy : {"fixed_window", "sliding_window", "gcra"}) {
            CHECK(guest.must(asking(in, policy, {1}, one_of(9))).rows.size() == 1);
            CHECK(guest.must(asking(in, policy, {1, 2}, one_of(9))).rows.size() == 2);
        }
        CHECK(guest.must(admitting(in, {{1, 9'000}, {2, 0}})).rows.size() == 2);
        CHECK(guest.must(with_keys(in, "look", {1})).rows.size() == 1);
        CHECK(guest.must(with_keys(in, "forget", {1, 2})).rows.size() == 2);
        CHECK(guest.must(sweeping(in, 0, 10, 0)).rows.size() == 1);
        CHECK(guest.run("CREATE TABLE " + (in / "mine") + " ()").error == "42501");
    }
    owner.must("DROP OWNED BY " + role);
    owner.must("DROP ROLE " + role);
}
