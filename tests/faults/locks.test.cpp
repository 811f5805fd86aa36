// SPDX-License-Identifier: BSL-1.0

// X11, X12, O38: somebody else's session holds a row.

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "weir/admit_all.hpp"

#include "scene.hpp"

using namespace faults;

namespace {

/// A crowd on 16 keys of which somebody holds one; words of the role are `setting`.
void hold_one_row(const std::string& of, const std::string& schema, const std::string& setting)
{
    INFO(of);
    scratch::session      holder(cluster().conninfo());
    weir::postgres::store counters(
        hasty(cluster().conninfo() + " options='-c " + setting + "'", schema));
    const limits all(counters);
    for (std::size_t n = 0; n < 3; ++n) REQUIRE(all[n].admit("3").basis == basis::counted);
    crowd asks(all, threads, 16);
    std::this_thread::sleep_for(300ms);  // of load, so that the first statements are behind
    holder.must("BEGIN");
    for (std::size_t n = 0; n < 3; ++n)
        REQUIRE(holder
                    .must("SELECT key FROM " + schema + ".counters WHERE key = $1 FOR UPDATE",
                          {uuid_of(all[n].digest("3"))})
                    .rows.size() == 1);
    const auto since = clock::now();
    std::this_thread::sleep_for(span());
    const auto freed = clock::now();
    holder.must("COMMIT");
    std::this_thread::sleep_for(700ms);
    const auto                told = asks.stop();
    std::vector<faults::told> held, others, later = between(told, freed + 600ms, clock::now());
    for (const auto& one : between(told, since, freed - 2 * deadline))
        (one.subject == 3 ? held : others).push_back(one);
    judge("X11 " + of + ", all", told);
    judge_times("X11 " + of + ", held", held);
    judge_times("X11 " + of + ", others", others);
    CHECK(share_authoritative(held) == 0);
    CHECK(share_authoritative(others) > 0.99);
    CHECK(share_authoritative(later) == 1);
    CHECK(heard_so_far().empty());
    holder.must("DROP SCHEMA " + schema + " CASCADE");
}

}  // namespace

TEST_CASE("a row that somebody holds for longer than lock_timeout or statement_timeout is an "
          "outage of its key alone (X11)",
          "[faults][X11]")
{
    hold_one_row("lock_timeout", "flock", "lock_timeout=20ms");
    hold_one_row("statement_timeout", "fstatement", "statement_timeout=20ms");
}

TEST_CASE(
    "a deadlock that somebody brings about costs one more try, and is counted once (X12, O38)",
    "[faults][X12][O38]")
{
    scratch::session by(cluster().conninfo()), other(cluster().conninfo());
    const auto       before  = cluster().log_of("deadlock detected").size();
    auto             options = hasty(cluster().conninfo() + " options='-c deadlock_timeout=300ms'"
                                                                        " application_name=weir_circle",
                                     "fcircle");
    options.deadline         = 20s;
    options.connections      = 1;
    weir::postgres::store counters(options);
    const limiter         ip("ip", ten, counters), user("user", ten, counters);
    REQUIRE(weir::admit_all({ip("a"), user("b")}));
    auto low = uuid_of(ip.digest("a")), high = uuid_of(user.digest("b"));
    if (high < low) std::swap(low, high);
    const auto lock = [&](const std::string& key) {
        other.send("SELECT FROM fcircle.counters WHERE key = '" + key + "' FOR UPDATE");
    };
    other.must("BEGIN");
    other.must("SELECT FROM fcircle.counters WHERE key = '" + high + "' FOR UPDATE");
    weir::decision made;
    std::thread    asks([&] { made = weir::admit_all({ip("a"), user("b")}); });
    REQUIRE(within(10s, [&] {
        return by.must(
                     "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'weir_circle' "
                     "AND wait_event_type = 'Lock'")
                   .number() == 1;
    }));
    lock(low);  // now each waits for the other; who looks first is told 40P01
    CHECK(other.finish().error.empty());
    other.must("COMMIT");
    asks.join();
    CHECK(made);
    CHECK(made.basis == basis::counted);
    CHECK(ip.peek("a").left == 8);
    CHECK(user.peek("b").left == 8);
    CHECK(cluster().log_of("deadlock detected").size() == before + 1);
    CHECK(heard_so_far().empty());
    by.must("DROP SCHEMA fcircle CASCADE");
}

TEST_CASE("under a role that is serializable by default no window is passed, and each ask is tried "
          "twice at most (X12)",
          "[faults][X12]")
{
    const auto& own = cluster();
    const auto  before =
        std::pair(own.log_of("could not serialize").size(), own.log_of("deadlock detected").size());
    const auto words = own.conninfo() + " options='-c default_transaction_isolation=serializable'";
    {
        weir::postgres::store first(hasty(words, "fserial")), second(hasty(words, "fserial"));
        const limits          all(first), same(second);
        crowd                 asks(all, 4, 4), ask_as_well(same, 4, 4);
        std::this_thread::sleep_for(span());
        auto told = asks.stop();
        for (const auto& one : ask_as_well.stop()) told.push_back(one);
        judge("X12 serializable", told);
        CHECK(share_authoritative(told) > 0.5);
    }
    std::printf("%-28s 40001 %zu times, 40P01 %zu times\n", "",
                own.log_of("could not serialize").size() - before.first,
                own.log_of("deadlock detected").size() - before.second);
    CHECK(own.log_of("deadlock detected").size() == before.second);
}
