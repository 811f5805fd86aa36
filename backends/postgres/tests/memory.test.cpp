// SPDX-License-Identifier: BSL-1.0

// What a process knows without asking: refusals that still hold, and units taken ahead.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "weir/admit_all.hpp"
#include "weir/limiter.hpp"

#include "catch.hpp"
#include "stores.hpp"

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using weir::basis;
using weir::postgres::store;

namespace {

constexpr weir::fixed_window at_most(std::uint64_t limit)
{
    return {.limit = limit, .window = scratch::for_ever};
}

using window_limiter = weir::limiter<weir::fixed_window, store>;

/// A store, a limiter of three, and what is counted of it.
struct scene {
    scene(const std::string& name, weir::duration longest)
        : home(name), statements(by, home.name()), counters(options(longest)),
          three("three", at_most(3), counters)
    {
    }

    weir::postgres::store_options options(weir::duration longest) const
    {
        auto made         = scratch::in(home.name());
        made.memo_longest = longest;
        return made;
    }

    /// Spends all: who is told that nothing is left knows that the next one is refused.
    void exhaust(const std::string& who) const
    {
        for (int n = 0; n < 3; ++n) CHECK(three.admit(who).basis == basis::counted);
        CHECK(three.admit(who).basis == basis::remembered);
    }

    scratch::schema            home;
    scratch::session           by;
    scratch::statement_counter statements;
    store                      counters;
    window_limiter             three;
};

}  // namespace

TEST_CASE("a refusal is remembered, and asks nobody as long as it holds", "[postgres][memo]")
{
    scene now("memo", 1h);
    now.exhaust("a");
    CHECK(now.statements() == 3);
    for (int n = 0; n < 1'000; ++n) {
        const auto made = now.three.admit("a", {.cost = 1U + static_cast<unsigned>(n) % 3});
        CHECK(!made);
        CHECK(made.basis == basis::remembered);
        CHECK(made.retry_after > 0s);
    }
    CHECK(now.statements() == 3);
    CHECK(now.three.admit("b").basis == basis::counted);  // of this key only
    CHECK(now.statements() == 4);
    CHECK(now.three.peek("a").basis == basis::counted);  // who looks wants to know

    const window_limiter other("other", at_most(3), now.counters);
    CHECK(!weir::admit_all({now.three("a"), other("a")}));
    CHECK(now.statements() == 4);
    CHECK(other.peek("a").left == 3);
}

TEST_CASE("what bettered a counter here is known here at once", "[postgres][memo]")
{
    scene now("better", 1h);
    for (const std::string who : {"a", "b", "c", "d"}) {
        const auto first = now.three.admit(who);
        CHECK(now.three.admit(who, {.cost = 2}));
        CHECK(now.three.admit(who).basis == basis::remembered);
        if (who == "a") now.three.give_back(who, first);
        else if (who == "b") CHECK(now.three.forget(who));
        else if (who == "c") CHECK(now.three.set_limit(at_most(4)));
        else CHECK(now.three.admit(who, {.cost = 0}).basis == basis::counted);
        const auto made = now.three.admit(who);
        CHECK(bool(made) == (who != "d"));
        CHECK(made.basis == (who == "d" ? basis::remembered : basis::counted));
        if (who == "c") CHECK(now.three.set_limit(at_most(3)));
    }
    CHECK(now.three.admit("e", {.cost = 2}));
    CHECK(!now.three.admit("e", {.cost = 2}));
    CHECK(now.three.admit("e").basis == basis::counted);  // one fits where two do not
}

TEST_CASE("what another process gave back is seen when the memory is too old", "[postgres][memo]")
{
    const scene          now("elsewhere", 300ms);
    store                second(now.options(300ms));
    const window_limiter there("three", at_most(3), second);
    const auto           made  = there.admit("a", {.cost = 3});
    const auto           asked = steady_clock::now();
    CHECK(now.three.admit("a").basis == basis::counted);
    there.give_back("a", made);
    if (const auto still = now.three.admit("a"); steady_clock::now() - asked < 250ms)
        CHECK(still.basis == basis::remembered);
    const auto limit = asked + 20s;
    while (!now.three.admit("a") && steady_clock::now() < limit) std::this_thread::yield();
    const auto took = steady_clock::now() - asked;
    CHECK(took >= 300ms);
    CHECK(took < 5s);
    CHECK(there.peek("a").left == 2);
}

TEST_CASE("a flood of more than 1000000 asks on a spent key is one statement a second",
          "[postgres][memo]")
{
    const int   threads = GENERATE(1, 4);
    const scene now("flood", 1s);
    now.exhaust("a");
    const auto               before   = now.statements();
    const auto               begun    = steady_clock::now();
    std::atomic<int>         admitted = 0;
    std::vector<std::thread> crew;
    for (int thread = 0; thread < threads; ++thread)
        crew.emplace_back([&] {
            for (int n = 0; n < 1'000'000 / threads || steady_clock::now() - begun < 2500ms; ++n)
                admitted += bool(now.three.admit("a"));
        });
    for (auto& one : crew) one.join();
    const auto seconds = std::chrono::floor<std::chrono::seconds>(steady_clock::now() - begun);
    const auto asked   = now.statements() - before;
    CHECK(admitted == 0);
    CHECK(asked >= 1);
    // Who finds the memory too old while another one asks already comes with a second statement.
    CHECK(asked <= (threads == 1 ? 1 : 2) * (seconds.count() + 1));
}

TEST_CASE("who waits as long as a remembered refusal says is admitted", "[postgres][memo]")
{
    const scratch::schema home("wait");
    store                 counters(scratch::in(home.name()));
    const weir::limiter   fast("fast", weir::gcra{.limit = 10, .window = 1s, .burst = 2}, counters);
    int                   remembered = 0;
    for (int round = 0; round < 5; ++round) {
        weir::decision refused;
        while (refused = fast.admit("a"), refused || refused.basis != basis::remembered) {}
        ++remembered;
        REQUIRE(refused.retry_after);
        const auto until = steady_clock::now() + *refused.retry_after;
        while (steady_clock::now() < until) {}
        CHECK(fast.admit("a"));
    }
    CHECK(remembered == 5);
}

namespace {

constexpr int stores = 4, threads = 8;

/// `work(limiter, thread)` on threads of four stores at once.
template <weir::policy Policy, class Work>
void on_four_stores(const scratch::schema& home, const Policy& limit, Work&& work)
{
    std::vector<std::unique_ptr<store>>                        all;
    std::vector<std::unique_ptr<weir::limiter<Policy, store>>> limits;
    for (int n = 0; n < stores; ++n) {
        all.push_back(std::make_unique<store>(scratch::in(home.name())));
        limits.push_back(std::make_unique<weir::limiter<Policy, store>>("hot", limit, *all.back()));
    }
    std::vector<std::thread> crew;
    for (int thread = 0; thread < stores * threads; ++thread)
        crew.emplace_back(
            [&, thread] { work(*limits[static_cast<std::size_t>(thread % stores)]); });
    for (auto& one : crew) one.join();
}

}  // namespace

TEMPLATE_TEST_CASE(
    "with leases four stores never admit more than the limit, nor waste more than agreed",
    "[postgres][lease]", weir::fixed_window, weir::sliding_window)
{
    constexpr std::uint64_t      limit = 5'000, units = 100;
    const scratch::schema        home("leases");
    scratch::session             by;
    scratch::statement_counter   statements(by, home.name());
    std::atomic<std::uint64_t>   admitted = 0, leased = 0;
    const weir::leased<TestType> policy{{.limit = limit, .window = scratch::for_ever}, units};
    on_four_stores(home, policy, [&](const auto& one) {
        for (int refused = 0; refused < 50;) {
            const auto made = one.admit("all");
            admitted += bool(made);
            leased += made && made.basis == basis::leased;
            refused += !made;
        }
    });
    CHECK(admitted <= limit);
    CHECK(admitted >= limit - stores * units);  // a window and a key: once for each store
    CHECK(leased > limit / 2);
    CHECK(statements() < static_cast<std::int64_t>(limit / 2));
    CHECK(by.must("SELECT sum(second) FROM " + home / "counters").number() <=
          static_cast<std::int64_t>(limit));
}

TEST_CASE("a lease is taken by nobody after its window, and each window keeps its limit",
          "[postgres][lease]")
{
    constexpr std::uint64_t                limit  = 400;
    constexpr weir::duration               window = 250ms;
    const scratch::schema                  home("turning");
    std::mutex                             turn;
    std::map<weir::instant, std::uint64_t> admitted;
    std::atomic<int>                       late = 0, leased = 0;
    const auto                             end = steady_clock::now() + 2s;
    on_four_stores(home, weir::leased{weir::fixed_window{.limit = limit, .window = window}, 20},
                   [&](const auto& one) {
                       while (steady_clock::now() < end) {
                           // The server's clock, for it is on this machine.
                           const auto before =
                               weir::instant(std::chrono::duration_cast<weir::duration>(
                                   std::chrono::system_clock::now().time_since_epoch()));
                           const auto made = one.admit("all");
                           if (!made) continue;
                           leased += made.basis == basis::leased;
                           late += before >= weir::window_end(made.at, window);
                           const std::lock_guard held(turn);
                           ++admitted[weir::window_end(made.at, window)];
                       }
                   });
    CHECK(late == 0);
    CHECK(leased > 0);
    CHECK(admitted.size() >= 5);
    for (const auto& [window_of, count] : admitted) CHECK(count <= limit);
}

TEST_CASE("a key that is asked once takes nothing ahead, and a forgotten one gives its lease up",
          "[postgres][lease]")
{
    const scratch::schema home("ahead");
    scratch::session      by;
    store                 counters(scratch::in(home.name()));
    const weir::limiter   one("hot", weir::leased{at_most(1'000), 100}, counters);
    const auto            taken = [&] {
        return by.must("SELECT coalesce(sum(second), 0) FROM " + home / "counters").number();
    };
    CHECK(one.admit("a"));
    CHECK(taken() == 1);
    for (int n = 1; n < 50; ++n) CHECK(one.admit("a"));
    CHECK(taken() <= 100);  // at most half of it is still to be used
    CHECK(taken() >= 50);
    CHECK(one.forget("a"));
    CHECK(one.admit("a").basis == basis::counted);
    CHECK(taken() == 1);
}
