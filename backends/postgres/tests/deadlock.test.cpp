// SPDX-License-Identifier: BSL-1.0

// Statements that carry the same keys, asked for in opposite orders, never wait in a circle (O38).

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "weir/admit_all.hpp"
#include "weir/limiter.hpp"

#include "catch.hpp"
#include "stores.hpp"

using namespace std::chrono_literals;

namespace {

constexpr int threads = 8;

/// Batches in all: WEIR_BATCHES of the environment, or so many that the test is soon done.
int batches()
{
    const char* const wanted = std::getenv("WEIR_BATCHES");
    return wanted == nullptr ? 10'000 : std::atoi(wanted);
}

/// What the server says of itself is some moments old: it is told when a connection ends.
std::int64_t deadlocks(const scratch::database& of)
{
    return scratch::session()
        .must("SELECT deadlocks FROM pg_stat_database WHERE datname = $1", {of.name()})
        .number();
}

weir::postgres::store_options in(const scratch::database& own)
{
    auto options        = scratch::without_memory(scratch::in("weir", own.words()));
    options.connections = 3;
    return options;
}

template <class Work>
void on_all_threads(Work&& work)
{
    std::vector<std::thread> crew;
    for (int thread = 0; thread < threads; ++thread)
        crew.emplace_back([&, thread] {
            for (int n = thread; n < batches(); n += threads) work(thread, n);
        });
    for (auto& one : crew) one.join();
}

}  // namespace

TEST_CASE("sets of two keys in opposite orders never deadlock, and are counted exactly (O38)",
          "[postgres]")
{
    const scratch::database own("sets");
    std::atomic<int>        admitted = 0, uncounted = 0;
    {
        weir::postgres::store    first(in(own)), second(in(own));
        const weir::fixed_window wide{.limit = 1'000'000, .window = scratch::for_ever};
        const weir::limiter      a1("a", wide, first), b1("b", wide, first);
        const weir::limiter      a2("a", wide, second), b2("b", wide, second);
        on_all_threads([&](int thread, int n) {
            const auto who  = std::to_string(n % 5 == 0 ? n % 3 : 0);
            const auto made = thread % 4 == 0   ? weir::admit_all({a1(who), b1(who)})
                              : thread % 4 == 1 ? weir::admit_all({b1(who), a1(who)})
                              : thread % 4 == 2 ? weir::admit_all({a2(who), b2(who)})
                                                : weir::admit_all({b2(who), a2(who)});
            admitted += bool(made);
            uncounted += made.basis != weir::basis::counted;
        });
        CHECK(admitted == batches());
        CHECK(uncounted == 0);
    }
    scratch::session by(own.words());
    CHECK(by.must("SELECT sum(second) FROM weir.counters").number() == 2 * batches());
    CHECK(by.must("SELECT count(*) FROM weir.counters").number() == 6);
    CHECK(deadlocks(own) == 0);
}

TEST_CASE("asks that come together for the same keys from all sides never deadlock (O38)",
          "[postgres]")
{
    constexpr int           keys = 12;
    const scratch::database own("asks");
    std::atomic<int>        told = 0, admitted = 0, uncounted = 0;
    {
        auto options        = in(own);
        options.connections = 1;
        std::vector<std::unique_ptr<weir::postgres::store>> stores;
        for (int n = 0; n < 4; ++n)
            stores.push_back(std::make_unique<weir::postgres::store>(options));
        std::vector<std::unique_ptr<weir::limiter<weir::gcra, weir::postgres::store>>> limits;
        for (auto& store : stores)
            limits.push_back(std::make_unique<weir::limiter<weir::gcra, weir::postgres::store>>(
                "a", weir::gcra{.limit = 1'000'000, .window = scratch::for_ever}, *store));
        on_all_threads([&](int thread, int n) {
            scratch::countdown left(keys);
            const auto&        mine = *limits[static_cast<std::size_t>(thread) % limits.size()];
            for (int i = 0; i < keys; ++i)
                mine.admit_then(std::to_string((thread % 2 == 0 ? i : keys - i) + n % 2),
                                [&](const weir::decision& made) {
                                    admitted += bool(made);
                                    uncounted += made.basis != weir::basis::counted;
                                    ++told;
                                    left.one_less();
                                });
            left.wait();
        });
        CHECK(told == keys * batches());
        CHECK(admitted == told);
        CHECK(uncounted == 0);
    }
    CHECK(deadlocks(own) == 0);
}

TEST_CASE("sets and single asks of the same keys never deadlock (O38)", "[postgres]")
{
    const scratch::database own("both");
    std::atomic<int>        uncounted = 0, units = 0;
    {
        weir::postgres::store    first(in(own)), second(in(own));
        const weir::fixed_window wide{.limit = 1'000'000, .window = scratch::for_ever};
        const weir::limiter      one("a", wide, first), two("a", wide, second);
        on_all_threads([&](int thread, int n) {
            const auto&       mine = thread % 2 == 0 ? one : two;
            const std::string a(1, static_cast<char>('a' + n % 3)),
                b(1, static_cast<char>('a' + n % 5));
            const auto note = [&](const weir::decision& made, int taken) {
                units += made ? taken : 0;
                uncounted += made.basis != weir::basis::counted;
            };
            switch (n % 4) {
            case 0:
                return note(weir::admit_all({mine(a), mine(b, {.cost = 2})}), 3);
            case 1:
                return note(weir::admit_all({mine(b, {.cost = 2}), mine(a)}), 3);
            case 2:
                return note(mine.admit(a), 1);
            default:
                const auto made = mine.admit(b);
                note(made, 0);
                mine.give_back(b, made);
            }
        });
        CHECK(uncounted == 0);
    }
    scratch::session by(own.words());
    CHECK(by.must("SELECT sum(second) FROM weir.counters").number() == units);
    CHECK(deadlocks(own) == 0);
}
