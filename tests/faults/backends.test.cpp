// SPDX-License-Identifier: BSL-1.0

// X1: the server's side of a connection dies.

#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "scene.hpp"

using namespace faults;

namespace {

/// Processes at the server that belong to stores of `name`; those only that wait for a lock, if so.
std::vector<std::string> backends(scratch::session& by, const std::string& name,
                                  bool locked = false)
{
    std::vector<std::string> found;
    for (const auto& row :
         by.must("SELECT pid FROM pg_stat_activity WHERE application_name = $1 AND "
                 "(wait_event_type = 'Lock' OR NOT $2::bool)",
                 {name, locked ? "true" : "false"})
             .rows)
        found.push_back(row.at(0).value());
    return found;
}

/// The backend of a statement that waits for a row.
std::string waiting_one(scratch::session& by, const std::string& name,
                        const std::string& not_this = "")
{
    std::string found;
    REQUIRE(within(10s, [&] {
        const auto all = backends(by, name, true);
        if (all.size() == 1 && all.front() != not_this) found = all.front();
        return !found.empty();
    }));
    return found;
}

}  // namespace

TEST_CASE("a statement ended by the administrator is asked once more, and counted once (X1)",
          "[faults][X1]")
{
    scratch::session by(cluster().conninfo()), holder(cluster().conninfo());
    const auto       name    = std::string("weir_ended");
    auto             options = hasty(cluster().conninfo() + " application_name=" + name, "ended");
    options.deadline         = 20s;
    options.connections      = 1;
    weir::postgres::store counters(options);
    const limiter         limit("ip", ten, counters);
    REQUIRE(limit.admit("a").left == 9);

    holder.must("BEGIN");
    holder.must("SELECT FROM ended.counters FOR UPDATE");
    weir::decision made;
    std::thread    asks([&] { made = limit.admit("a"); });
    const auto     first = waiting_one(by, name);
    by.must("SELECT pg_terminate_backend($1)", {first});
    (void)waiting_one(by, name, first);
    holder.must("COMMIT");
    asks.join();
    CHECK(made);
    CHECK(made.basis == basis::counted);
    CHECK(made.left == 8);
    CHECK(limit.peek("a").left == 8);
    CHECK(heard_so_far().empty());
}

TEST_CASE("a statement whose backend is killed may have been counted, and is not asked again (X1)",
          "[faults][X1]")
{
    const auto&    own    = cluster();
    const auto     name   = std::string("weir_killed");
    const auto     before = own.log_of("was terminated by signal 9").size();
    weir::decision made;
    {
        auto options =
            hasty(own.conninfo() + " options='-c synchronous_commit=on' application_name=" + name,
                  "fkill");
        options.deadline    = 20s;
        options.connections = 1;
        weir::postgres::store counters(options);
        const limiter         limit("ip", ten, counters, {weir::fail_open});
        REQUIRE(limit.admit("a").left == 9);
        {
            scratch::session by(own.conninfo()), holder(own.conninfo());
            holder.must("BEGIN");
            holder.must("SELECT FROM fkill.counters FOR UPDATE");
            std::thread asks([&] { made = limit.admit("a"); });
            const auto  backend = std::stoi(waiting_one(by, name));
            REQUIRE(kill(backend, SIGKILL) == 0);
            asks.join();
        }
        CHECK(made);
        CHECK(made.basis == basis::store_unavailable);
        CHECK(comes_back(limit));
        CHECK(limit.peek("a").left == 9);  // it was not: the row was locked
    }
    CHECK(own.log_of("was terminated by signal 9").size() == before + 1);
}

TEST_CASE("under backends that are ended, and one that is killed, no window is passed (X1)",
          "[faults][X1]")
{
    const auto&           own  = cluster();
    const auto            name = std::string("weir_load");
    weir::postgres::store counters(hasty(own.conninfo() + " application_name=" + name, "fload"));
    const limits          all(counters);
    REQUIRE(comes_back(all.closed));
    const auto before = descriptors(), threads_before = tasks();

    crowd      asks(all);
    const auto begun = clock::now();
    while (clock::now() < begun + span() / 2) {
        scratch::session by(own.conninfo());
        const auto       some = backends(by, name);
        if (!some.empty()) by.run("SELECT pg_terminate_backend($1)", {some.front()});
        std::this_thread::sleep_for(250ms);
    }
    const auto ended = clock::now();
    std::this_thread::sleep_for(500ms);  // of load without a fault
    {
        scratch::session by(own.conninfo());
        const auto       some = backends(by, name);
        REQUIRE(!some.empty());
        REQUIRE(kill(std::stoi(some.front()), SIGKILL) == 0);
    }
    const auto killed = clock::now();
    REQUIRE(within(20s, [&] { return all.closed.peek("back").basis > basis::remembered; }));
    REQUIRE(comes_back(all.closed));
    const auto back = clock::now();
    std::this_thread::sleep_for(300ms);
    const auto told = asks.stop();
    judge("X1 ended and killed", told);
    const auto meanwhile = share_authoritative(between(told, begun, ended));
    std::printf("%-28s %.1f %% by the store while they were ended one by one\n", "",
                100 * meanwhile);
    CHECK(meanwhile > 0.9);
    CHECK(recovered(told, killed) < 3s);
    std::printf("%-28s back %.0f ms after the kill\n", "", ms(back - killed));
    CHECK(within(5s, [&] { return std::abs(descriptors() - before) <= 2; }));
    CHECK(tasks() <= threads_before + 1);  // who finds connections, from the first loss on
}
