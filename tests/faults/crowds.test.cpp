// SPDX-License-Identifier: BSL-1.0

// X6, X7: more callers than places.

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "proxy.hpp"
#include "scene.hpp"

using namespace faults;

namespace {

/// Every statement that writes takes that much longer.
void slow_down(const std::string& schema, const std::string& seconds)
{
    scratch::session(cluster().conninfo())
        .must("CREATE FUNCTION " + schema +
              ".sleeps() RETURNS trigger LANGUAGE plpgsql AS "
              "'BEGIN PERFORM pg_sleep(" +
              seconds +
              "); RETURN NULL; END';"
              "CREATE TRIGGER sleeps BEFORE INSERT ON " +
              schema +
              ".counters FOR EACH STATEMENT "
              "EXECUTE FUNCTION " +
              schema + ".sleeps()");
}

}  // namespace

TEST_CASE("64 threads on 2 connections and 10 ms statements are all answered, and none twice as "
          "often as another (X6)",
          "[faults][X6]")
{
    weir::postgres::store counters(hasty(cluster().conninfo(), "fair"));
    const limiter         limit("ip", few, counters);
    REQUIRE(comes_back(limit));
    slow_down("fair", "0.010");

    std::vector<std::vector<told>> by_thread(64);
    std::vector<std::thread>       crew;
    std::atomic<bool>              over = false;
    for (std::size_t thread = 0; thread < by_thread.size(); ++thread)
        crew.emplace_back([&, thread] {
            for (std::uint64_t n = thread; !over; ++n) {
                const auto begun = clock::now();
                const auto made  = limit.admit(std::to_string(n % 8));
                by_thread[thread].push_back({begun, clock::now() - begun, made, n % 8});
                std::this_thread::sleep_for(1ms);
            }
        });
    std::this_thread::sleep_for(span() / 2);
    over = true;
    for (auto& one : crew) one.join();
    std::vector<told> all;
    std::size_t       least = 1'000'000, most = 0;
    for (const auto& some : by_thread) {
        const auto served =
            static_cast<std::size_t>(std::ranges::count_if(some, &told::authoritative));
        least = std::min(least, served);
        most  = std::max(most, served);
        all.insert(all.end(), some.begin(), some.end());
    }
    judge_times("X6 64 threads", all);
    std::printf("%-28s served least %zu, most %zu times\n", "", least, most);
    CHECK(windows_over(all, few) == 0);
    CHECK(share_authoritative(all) > 0.99);
    CHECK(most <= 2 * least);
    CHECK(heard_so_far().empty());
}

TEST_CASE(
    "whoever finds no place in the line is told at once by the rule, and that is no outage (X6)",
    "[faults][X6]")
{
    auto options    = hasty(cluster().conninfo(), "crowded");
    options.waiting = 4;
    weir::postgres::store counters(options);
    const limits          all(counters);
    REQUIRE(comes_back(all.closed));
    slow_down("crowded", "0.010");
    crowd asks(all, 64);
    std::this_thread::sleep_for(span() / 2);
    const auto told = asks.stop();
    judge("X6 4 places", told);
    std::vector<faults::told> turned_away;
    std::ranges::copy_if(told, std::back_inserter(turned_away),
                         [](const auto& one) { return !one.authoritative(); });
    CHECK(told.size() - turned_away.size() > 100);
    judge_times("X6 turned away", turned_away, 5ms);
    CHECK(heard_so_far().empty());
}

TEST_CASE(
    "a server that has no connection left is tried ten times a second at most, out of step (X7)",
    "[faults][X7]")
{
    const scratch::server own("postgres", "ffull",
                              no_fsync + "max_connections=8 superuser_reserved_connections=3");
    {
        weir::postgres::store maker(hasty(own.conninfo()));
    }
    proxy                                          between_us(own.folder());
    std::vector<std::unique_ptr<scratch::session>> idlers;
    CHECK(within(10s, [&] {  // until there is no place any more, also not that of who just left
        try {
            idlers.push_back(std::make_unique<scratch::session>(own.conninfo()));
        } catch (const std::runtime_error&) {
        }
        return idlers.size() == 8;
    }));
    const auto before  = descriptors();
    auto       options = hasty(between_us.conninfo());
    CHECK_THROWS_WITH(weir::postgres::store(options), Catch::Contains("too many clients"));
    options.start_unconnected = true;
    weir::postgres::store counters(options);
    const limits          all(counters);
    crowd                 asks(all);
    std::this_thread::sleep_for(std::max<clock::duration>(span(), 3s));
    CHECK(heard_so_far() == begin_of_outage);
    const auto tries = between_us.accepted();
    judge_connects(tries);

    std::vector<clock::duration> pauses;
    for (std::size_t n = 3; n < tries.size(); ++n) pauses.push_back(tries[n] - tries[n - 1]);
    REQUIRE(pauses.size() >= 4);
    const auto [shortest, longest] = std::ranges::minmax(pauses);
    std::printf("%-28s pauses of %.0f to %.0f ms\n", "", ms(shortest), ms(longest));
    CHECK(longest - shortest > 50ms);

    const auto freed = clock::now();
    idlers.clear();
    CHECK(comes_back(all.closed));
    const auto back = clock::now();
    std::this_thread::sleep_for(200ms);
    const auto told = asks.stop();
    judge("X7 no connection left", told);
    std::printf("%-28s back %.0f ms after there was room\n", "", ms(back - freed));
    CHECK(back - freed < 2s);
    judge_outage(all.closed);
    // Two connections here, of which each is two ends in the proxy; eight idlers less.
    CHECK(within(5s, [&] { return std::abs(descriptors() - (before - 8 + 2 + 4)) <= 2; }));
}
