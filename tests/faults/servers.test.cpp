// SPDX-License-Identifier: BSL-1.0

// X2, X3, X4, O35, O58: the whole server is gone, is another one, or says nothing.

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "weir/http/refusal.hpp"

#include "proxy.hpp"
#include "scene.hpp"

using namespace faults;

namespace {

/// Runs a program of PostgreSQL as the user that owns the folder, in there.
void run(const scratch::server& in, const std::string& program, const std::string& words)
{
    const auto command = "cd " + in.folder() +
                         " && bash -c 'source \"" WEIR_TOOLS_DIR
                         "/unprivileged\" && unprivileged \"$(ls -d "
                         "/usr/lib/postgresql/*/bin | tail -n 1)/" +
                         program + "\" " + words + "' </dev/null >/dev/null 2>&1";
    REQUIRE(std::system(command.c_str()) == 0);
}

/// Another server with all that is in `first`, which follows it and lets nobody write.
void become_standby(const scratch::server& own, const scratch::server& first)
{
    own.stop();
    std::filesystem::remove_all(own.folder() + "/data");
    run(own, "pg_basebackup", "-D data -h " + first.folder() + " -U postgres -R -c fast --no-sync");
    std::ofstream(own.folder() + "/data/postgresql.conf", std::ios::app)
        << "unix_socket_directories = '" << own.folder() << "'\n";
    own.go_on();
}

/// When all of the crowd are answered by the store again.
moment until_back(const limits& all)
{
    REQUIRE(comes_back(all.closed));
    return clock::now();
}

}  // namespace

TEST_CASE("a server that is stopped at once and started is an outage with one begin and one end "
          "(X2, O58)",
          "[faults][X2][O58]")
{
    const auto&           own = cluster();
    proxy                 between_us(own.folder());
    weir::postgres::store counters(hasty(between_us.conninfo(), "frestart"));
    const limits          all(counters);
    REQUIRE(comes_back(all.closed));
    const auto before = descriptors(), threads_before = tasks();

    crowd asks(all);
    std::this_thread::sleep_for(300ms);
    own.stop();
    const auto down = clock::now();
    std::this_thread::sleep_for(span());

    CHECK(heard_so_far() == begin_of_outage);
    const auto refused = all.closed.admit("0");
    REQUIRE(!refused);
    const weir::refusal said(refused);
    CHECK(said.status() == 503);
    for (const auto& header : said.headers()) CHECK(header.name != "Retry-After");

    const auto starts = clock::now();
    own.go_on();
    const auto up   = clock::now();
    const auto back = until_back(all);
    std::this_thread::sleep_for(500ms);
    const auto told = asks.stop();
    judge("X2 restart", told);
    std::printf("%-28s back %.0f ms after it accepted\n", "", ms(back - up));
    CHECK(back - up < 2s);
    CHECK(recovered(told, up) < 2s);
    CHECK(share_authoritative(between(told, down + 200ms, starts)) == 0);
    judge_outage(all.closed);
    judge_connects(between_us.accepted());
    CHECK(within(5s, [&] { return std::abs(descriptors() - before) <= 2; }));
    CHECK(tasks() <= threads_before + 1);
}

TEST_CASE("a server frozen and thawed: in time by the rule, rarely asked, and soon believed again "
          "(X4, O35)",
          "[faults][X4][O35]")
{
    const auto&           own = cluster();
    proxy                 between_us(own.folder());
    weir::postgres::store counters(hasty(between_us.conninfo(), "ffrozen"));
    const limits          all(counters);
    REQUIRE(comes_back(all.closed));
    const auto before = descriptors();

    crowd asks(all);
    std::this_thread::sleep_for(300ms);
    own.freeze();
    const auto frozen = clock::now();
    std::this_thread::sleep_for(span());
    const auto thawed = clock::now();
    CHECK(heard_so_far() == begin_of_outage);
    own.thaw();
    const auto back = until_back(all);
    std::this_thread::sleep_for(300ms);
    const auto told = asks.stop();
    judge("X4 frozen", told);

    // Five failures on each of two connections open the breakers; then each asks about twice a
    // second.
    const auto later = between(told, frozen + 600ms, thawed);
    const auto waited =
        std::ranges::count_if(later, [](const auto& one) { return one.took > 25ms; });
    std::printf("%-28s back %.0f ms after it was thawed; %td waited\n", "", ms(back - thawed),
                waited);
    CHECK(static_cast<double>(waited) <= 2 * 2.5 * ms(thawed - frozen) / 1'000 + 2);
    CHECK(share_authoritative(later) == 0);
    CHECK(back - thawed < 1s + 600ms);
    judge_outage(all.closed);
    judge_connects(between_us.accepted());
    CHECK(within(5s, [&] { return std::abs(descriptors() - before) <= 2; }));
}

TEST_CASE(
    "a server whose statements all take too long is asked rarely, and no connection is kept (X4)",
    "[faults][X4]")
{
    proxy                 between_us(cluster().folder());
    weir::postgres::store counters(hasty(between_us.conninfo(), "slow"));
    const limits          all(counters);
    REQUIRE(comes_back(all.closed));
    const auto before = descriptors();

    scratch::session by(cluster().conninfo());
    by.must("CREATE FUNCTION slow.sleeps() RETURNS trigger LANGUAGE plpgsql AS "
            "'BEGIN PERFORM pg_sleep(1); RETURN NULL; END';"
            "CREATE TRIGGER sleeps BEFORE INSERT ON slow.counters FOR EACH STATEMENT "
            "EXECUTE FUNCTION slow.sleeps()");
    crowd      asks(all);
    const auto begun = clock::now();
    std::this_thread::sleep_for(span());
    CHECK(heard_so_far() == begin_of_outage);
    by.must("DROP TRIGGER sleeps ON slow.counters");  // waits for those who sleep
    const auto healed = clock::now();
    const auto told_back =
        within(20s, [&] { return bool(all.closed.admit("new").basis == basis::counted); });
    CHECK(told_back);
    const auto back = until_back(all);
    std::this_thread::sleep_for(300ms);
    const auto told = asks.stop();
    judge("X4 slow statements", told);
    const auto later = between(told, begun + 600ms, healed);
    const auto waited =
        std::ranges::count_if(later, [](const auto& one) { return one.took > 25ms; });
    std::printf("%-28s back %.0f ms after it was quick; %td waited\n", "", ms(back - healed),
                waited);
    CHECK(static_cast<double>(waited) <= 2 * 2.5 * ms(healed - begun) / 1'000 + 2);
    CHECK(back - healed < 3s);
    judge_outage(all.closed);
    judge_connects(between_us.accepted());
    CHECK(within(5s, [&] { return std::abs(descriptors() - before) <= 2; }));
    CHECK(within(5s, [&] {  // those that were left sleep no longer, and are gone
        return by.must("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%slow.%' AND "
                       "pid <> pg_backend_pid()")
                   .number() <= 2;
    }));
}

TEST_CASE("of two hosts the one that may be written to is found, as often as they change (X3)",
          "[faults][X3]")
{
    const scratch::server first("postgres", "fhost1", no_fsync),
        second("postgres", "fhost2", no_fsync);
    auto                  options = hasty("host=" + first.folder() + "," + second.folder() +
                                          " user=postgres dbname=postgres target_session_attrs=read-write");
    weir::postgres::store counters(options);
    const limits          all(counters);
    const limiter         lasting("lasting", ten, counters);
    REQUIRE(comes_back(all.closed));
    become_standby(second, first);
    REQUIRE(comes_back(all.closed));
    CHECK(within(10s, [&] { return lasting.admit("a").left == 9; }));
    {
        scratch::session by(second.conninfo());
        CHECK(within(10s, [&] {
            return by.must("SELECT count(*) FROM weir.counters WHERE key = $1",
                           {uuid_of(lasting.digest("a"))})
                       .number() == 1;
        }));
    }
    const auto before = descriptors();

    crowd asks(all);
    std::this_thread::sleep_for(200ms);
    first.stop();
    std::this_thread::sleep_for(300ms);
    run(second, "pg_ctl", "promote -D data -w -s");
    const auto promoted = clock::now();
    const auto there    = until_back(all);
    CHECK(there - promoted < 3s);
    CHECK(lasting.peek("a").left == 9);  // what the replica had
    std::this_thread::sleep_for(300ms);
    const auto told = asks.stop();
    judge("X3 promoted", told);
    std::printf("%-28s back %.0f ms after it was promoted\n", "", ms(there - promoted));
    judge_outage(all.closed);

    // And the way back: the second is alive and only lets nobody write any more (25006).
    first.go_on();
    scratch::session by(second.conninfo());
    crowd            go_on(all);
    std::this_thread::sleep_for(200ms);
    by.must("ALTER SYSTEM SET default_transaction_read_only = on");
    const auto closed = clock::now();
    by.must("SELECT pg_reload_conf()");
    CHECK(within(20s, [&] {
        return by.must("SHOW default_transaction_read_only").rows.at(0).at(0) == "on";
    }));
    std::this_thread::sleep_for(500ms);
    const auto gone = until_back(all);
    CHECK(by.must("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%weir.%' AND pid <> "
                  "pg_backend_pid()")
              .number() == 0);
    CHECK(all.closed.admit("another").basis == basis::counted);
    const auto told_there = go_on.stop();
    judge("X3 read-only", told_there, 2);  // the first has counts of its own
    std::printf("%-28s back %.0f ms after it was closed\n", "", ms(recovered(told_there, closed)));
    CHECK(recovered(told_there, closed) < 3s);
    CHECK(gone - closed < 3s);
    CHECK(within(5s, [&] { return std::abs(descriptors() - before) <= 3; }));
}
