// SPDX-License-Identifier: BSL-1.0

// Places of calendar caps on PostgreSQL, 32 callers: weir-bench-calendar CONNINFO [ROUNDS].
//   seed      one advisory lock for all, the placed rows counted under it
//   one lock  Weir's places under such a lock, to see what the lock costs
//   weir      Weir's places as they are
// Each caller's transaction writes a row for the application and one for its mail. With nothing
// placed before, and with 10,000. The ways take turns in each round. calendar.py starts a server.

#include <libpq-fe.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "weir/postgres/calendar.hpp"

#include "reach.hpp"

namespace {

constexpr int           callers       = 32;
constexpr int           each          = 20;
constexpr int           placed_before = 10'000;
constexpr weir::instant at =
    std::chrono::sys_days(std::chrono::days(20'458)) + std::chrono::minutes(560);
constexpr weir::calendar_caps caps{.per_hour = 30, .per_day = 100};
constexpr std::int64_t        hour = 3'600'000'000'000;

class connection {
public:
    explicit connection(const char* conninfo) : db_(PQconnectdb(conninfo))
    {
        if (PQstatus(db_) != CONNECTION_OK) fail();
        PQsetNoticeProcessor(
            db_, [](void*, const char*) {}, nullptr);
    }
    ~connection() { PQfinish(db_); }
    connection(const connection&)            = delete;
    connection& operator=(const connection&) = delete;

    operator PGconn*() const { return db_; }

    using rows = std::unique_ptr<PGresult, decltype(&PQclear)>;

    rows run(const std::string& sql)
    {
        rows       made(PQexec(db_, sql.c_str()), &PQclear);
        const auto status = PQresultStatus(made.get());
        if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) fail();
        return made;
    }

private:
    [[noreturn]] void fail() const
    {
        std::fputs(PQerrorMessage(db_), stderr);
        std::exit(1);
    }

    PGconn* db_;
};

std::string ticks(weir::instant when) { return std::to_string(when.time_since_epoch().count()); }

/// What the seed does with the counts of all hours from today on.
weir::instant first_with_room(const PGresult* counts)
{
    std::map<std::int64_t, int> by_hour, by_day;
    for (int row = 0; row < PQntuples(counts); ++row) {
        const auto number = std::atoll(PQgetvalue(counts, row, 0));
        const auto many   = std::atoi(PQgetvalue(counts, row, 1));
        by_hour[number] += many, by_day[number / 24] += many;
    }
    auto candidate = at.time_since_epoch().count() / hour;
    for (int step = 0; step < 24 * 400; ++step) {
        if (by_day[candidate / 24] >= 100) candidate = (candidate / 24 + 1) * 24;
        else if (by_hour[candidate] >= 30) ++candidate;
        else break;
    }
    return std::max(at, weir::instant(weir::duration(candidate * hour)));
}

void write_event(connection& by, weir::instant release)
{
    by.run("INSERT INTO events (release) VALUES (" + ticks(release) + "); COMMIT");
}

void write_application(connection& by)
{
    by.run("BEGIN");
    by.run("INSERT INTO applications (email) VALUES ('someone@example.org')");
}

void by_the_seed(connection& by, weir::postgres::calendar&)
{
    write_application(by);
    by.run("SELECT pg_advisory_xact_lock(8, 1)");
    const auto today = at.time_since_epoch().count() / (24 * hour) * (24 * hour);
    const auto counts =
        by.run("SELECT release / " + std::to_string(hour) +
               ", count(*) FROM events WHERE release >= " + std::to_string(today) + " GROUP BY 1");
    write_event(by, first_with_room(counts.get()));
}

void place(connection& by, weir::postgres::calendar& windows)
{
    const auto found = windows.place(by, at);
    if (!found) std::abort();
    write_event(by, found.release);
}

void under_one_lock(connection& by, weir::postgres::calendar& windows)
{
    write_application(by);
    by.run("SELECT pg_advisory_xact_lock(8, 2)");
    place(by, windows);
}

void by_weir(connection& by, weir::postgres::calendar& windows)
{
    write_application(by);
    place(by, windows);
}

using way = void (*)(connection&, weir::postgres::calendar&);

class course {
public:
    explicit course(const char* conninfo) : conninfo_(conninfo), own_(conninfo)
    {
        own_.run("DROP TABLE IF EXISTS applications, events, events_before, places_before");
        own_.run("CREATE TABLE applications (id bigserial PRIMARY KEY, email text)");
        own_.run("CREATE TABLE events (id bigserial PRIMARY KEY, release bigint NOT NULL);"
                 "CREATE INDEX ON events (release)");
        weir::postgres::calendar windows(own_, "bench", caps);
        own_.run("TRUNCATE weir.places; BEGIN");
        for (int i = 0; i < placed_before; ++i) {
            if (i % 100 == 99) own_.run("COMMIT; BEGIN");  // each place is two locks until then
            own_.run("INSERT INTO events (release) VALUES (" +
                     ticks(windows.place(own_, at).release) + ")");
        }
        own_.run("COMMIT; CREATE TABLE places_before AS TABLE weir.places;"
                 "CREATE TABLE events_before AS TABLE events");
        for (int i = 0; i < callers; ++i) all_.push_back(std::make_unique<connection>(conninfo_));
    }
    ~course()
    {
        own_.run("DROP TABLE applications, events, events_before, places_before;"
                 "DELETE FROM weir.places WHERE calendar = 'bench'");
    }
    course(const course&)            = delete;
    course& operator=(const course&) = delete;

    /// Places a second, and that no window got more than it may.
    double measure(way one, bool filled)
    {
        begin_again(filled);
        weir::postgres::calendar windows(own_, "bench", caps);
        one(own_, windows);  // it has looked at what is full once
        std::barrier             together(callers + 1);
        std::vector<std::thread> threads;
        for (auto& db : all_)
            threads.emplace_back([&] {
                together.arrive_and_wait();
                for (int i = 0; i < each; ++i) one(*db, windows);
            });
        together.arrive_and_wait();
        const auto begun = std::chrono::steady_clock::now();
        for (auto& thread : threads) thread.join();
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
        check(filled);
        return callers * each / took.count();
    }

private:
    void begin_again(bool filled)
    {
        own_.run("TRUNCATE weir.places, events, applications");
        if (filled)
            own_.run("INSERT INTO weir.places TABLE places_before;"
                     "INSERT INTO events TABLE events_before;"
                     "SELECT setval('events_id_seq', (SELECT max(id) FROM events))");
        for (const auto* const table : {"weir.places", "events"})
            own_.run(std::string("VACUUM ANALYZE ") + table);
        own_.run("CHECKPOINT");
    }

    void check(bool filled)
    {
        const auto seen = own_.run(
            "SELECT (SELECT count(*) FROM events), (SELECT max(n) FROM (SELECT count(*) AS n FROM "
            "events GROUP BY release / 3600000000000) AS h), (SELECT max(n) FROM (SELECT count(*) "
            "AS n FROM events GROUP BY release / 86400000000000) AS d)");
        const auto number = [&](int column) {
            return std::atoi(PQgetvalue(seen.get(), 0, column));
        };
        if (number(0) == callers * each + 1 + (filled ? placed_before : 0) && number(1) <= 30 &&
            number(2) <= 100)
            return;
        std::fputs("a cap was passed, or a place was lost\n", stderr);
        std::exit(1);
    }

    const char*                              conninfo_;
    connection                               own_;
    std::vector<std::unique_ptr<connection>> all_;
};

double median(std::vector<double> values)
{
    std::ranges::sort(values);
    return values[values.size() / 2];
}

struct figures {
    std::vector<double> seed, one_lock, weir;

    void measure(course& on, bool filled)
    {
        seed.push_back(on.measure(by_the_seed, filled));
        one_lock.push_back(on.measure(under_one_lock, filled));
        weir.push_back(on.measure(by_weir, filled));
    }
    void print(const char* when) const
    {
        std::printf("%-14s seed %8.0f   under one lock %8.0f   weir %8.0f   places a second\n",
                    when, median(seed), median(one_lock), median(weir));
    }
    [[nodiscard]] double ratio() const
    {
        std::vector<double> ratios;
        for (std::size_t i = 0; i < weir.size(); ++i) ratios.push_back(weir[i] / seed[i]);
        return median(ratios);
    }
};

}  // namespace

int main(int argc, char** argv)
{
    if (argc < 2) {
        std::fputs("weir-bench-calendar CONNINFO [ROUNDS]\n", stderr);
        return 2;
    }
    course    on(argv[1]);
    figures   empty, filled;
    const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
    for (int round = 0; round < rounds; ++round) empty.measure(on, false), filled.measure(on, true);
    empty.print("none placed");
    filled.print("10,000 placed");
    bench::reach("calendar_placed_10000/seed", filled.ratio(), bench::goal::at_least, 5);
    bench::reach("calendar_empty/seed", empty.ratio(), bench::goal::at_least, 1);
    return 0;
}
