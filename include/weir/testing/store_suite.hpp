// SPDX-License-Identifier: BSL-1.0
#pragma once

// The behaviour that every store must show, for whoever writes one; needs no test framework:
//
//     my_store counters(...);
//     weir::testing::store_suite<weir::gcra>(counters, [](bool held, std::string_view claim) {
//         if (!held) { std::cerr << "my_store: not so: " << claim << '\n'; failed = true; }
//     });

#include <atomic>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <latch>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "weir/decision.hpp"
#include "weir/key.hpp"
#include "weir/policy.hpp"
#include "weir/store.hpp"
#include "weir/testing/twin.hpp"
#include "weir/time.hpp"

namespace weir::testing {

struct suite_options {
    /// Limiters of the suite are named with it. A store that keeps its counters wants another one
    /// for each run.
    std::string_view names = "suite";

    /// False for a store of estimates that has room to spare: its give_back and forget do nothing,
    /// and all that it says is `basis::estimated`.
    bool exact = true;

    int threads = 8;  ///< That ask at once, where a claim is about threads.
};

/// Puts one policy on the store to every claim, and reports each by
/// `report(bool held, std::string_view claim)`, on the calling thread. The store's word is compared
/// with that of the policy's own arithmetic. A store on the caller's clock is also taken through
/// windows and back in time; one on its own clock is asked in a window that lasts until 2049.
template <policy Policy, class Store, class Report>
    requires store_of<Store, Policy>
void store_suite(Store& store, Report&& report, suite_options options = {});

// ---------------------------------------------------------------------------------------------

namespace detail {

template <policy Policy, class Store, class Report>
class suite {
public:
    suite(Store& store, Report& report, const suite_options& options)
        : store_(store), report_(report), options_(options)
    {
    }

    void run()
    {
        counting(), refusing(), merging();
        charging(), returning(), resetting();
        enrolling(), changing(), naming(), racing();
        if constexpr (Store::on_callers_clock) turning(), stepping(), wandering();
    }

private:
    using counter = twin<Policy, Store>;

    static constexpr duration length = Store::on_callers_clock ? duration(std::chrono::minutes(1))
                                                               : duration(std::chrono::years(40));
    static constexpr instant  start  = std::chrono::sys_days(std::chrono::days(20'454));

    static Policy of(std::uint64_t limit, duration window = length)
    {
        return {.limit = limit, .window = window};
    }
    std::string fresh() { return std::string(options_.names) + '.' + std::to_string(++named_); }
    counter     fresh_counter(std::uint64_t limit) { return {store_, fresh(), of(limit)}; }
    void        claim(std::string_view text, bool held) { report_(held, text); }

    static bool give_back(counter& to, std::uint64_t cost, instant lapses, instant at)
    {
        return to.agree({.cost = cost, .verb = verb::give_back, .lapses = lapses}, at);
    }
    static bool has_left(counter& one, std::uint64_t units, instant at = start)
    {
        return one.peek(at) && one.made().left == units;
    }

    void counting()
    {
        auto one = fresh_counter(10);
        claim("an untouched key has its whole limit", has_left(one, 10) && one.made());
        claim("units are taken", one.spend(4, start) && one.made() && one.made().left == 6);
        claim("counts are told as counted, and estimates as estimated",
              one.made().basis == (options_.exact ? basis::counted : basis::estimated));
        claim("a refusal changes no count", one.spend(7, start) && !one.made() && has_left(one, 6));
        claim("exactly the limit is admitted",
              one.spend(6, start) && one.made() && one.spend(1, start) && !one.made());
        claim("a look takes nothing", has_left(one, 0) && has_left(one, 0) && !one.made());
    }

    void refusing()
    {
        auto none = fresh_counter(0);
        claim("a limit of 0 refuses and knows no wait",
              none.spend(1, start) && !none.made() && !none.made().retry_after);

        auto three = fresh_counter(3);
        claim("a cost over the limit never fits",
              three.spend(4, start) && !three.made() && !three.made().retry_after);
        claim("the largest cost there is does not wrap",
              three.spend(~std::uint64_t{0}, start) && !three.made() && has_left(three, 3));
    }

    void merging()
    {
        auto merged = fresh_counter(10), alone = fresh_counter(10);
        bool same = merged.spend(3, start, 2);
        for (int i = 0; i < 2; ++i) same &= alone.spend(3, start);
        claim("callers merged into one ask are told what they would be told in turn",
              same && merged.made().left == alone.made().left && merged.made());
        claim("as many of them are granted as fit",
              merged.spend(1, start, 7) && !merged.made() && has_left(merged, 0));
        claim("none is granted when none fits", merged.spend(1, start, 1000) && !merged.made());
    }

    void charging()
    {
        auto one = fresh_counter(10);
        claim("a charge takes units",
              one.agree({.cost = 4, .verb = verb::charge}, start) && has_left(one, 6));
        claim("a charge may leave a debt",
              one.agree({.cost = 9, .verb = verb::charge}, start) && has_left(one, 0));
    }

    void returning()
    {
        auto       one    = fresh_counter(10);
        const bool spent  = one.spend(6, start);
        const auto lapses = of(10).lapses(one.made());
        if (!options_.exact) {
            one.answer({.cost = 6, .verb = verb::give_back, .lapses = lapses}, start);
            return claim("an estimate gives nothing back", spent && has_left(one, 4));
        }
        claim("units are put back", spent && give_back(one, 2, lapses, start) && has_left(one, 6));
        claim("units that lapsed are not",
              give_back(one, 4, instant::min(), start) && has_left(one, 6));
        claim("no more than the limit is put back",
              give_back(one, 1000, lapses, start) && has_left(one, 10));
        if constexpr (Store::on_callers_clock)
            claim("nothing is put back at or after its lapse",
                  one.spend(6, start) && one.spend(1, lapses) &&
                      give_back(one, 6, lapses, lapses) && one.peek(lapses) &&
                      one.made().left < 10);
    }

    void resetting()
    {
        auto       one   = fresh_counter(10);
        const bool spent = one.spend(10, start);
        if (options_.exact)
            claim("a forgotten key is untouched",
                  spent && one.agree({.verb = verb::forget}, start) && has_left(one, 10));
        else
            claim("an estimate cannot forget and says so",
                  spent && one.answer({.verb = verb::forget}, start).basis == basis::estimated &&
                      has_left(one, 0));
    }

    void enrolling()
    {
        const auto name = fresh();
        counter    one(store_, name, of(10)), again(store_, name, of(10)),
            raised(store_, name, of(12));
        const bool spent = one.spend(10, start);
        again.peek(start), raised.peek(start);
        claim("a limiter enrolled again meets its counters",
              spent && one.who() == again.who() && !again.made());
        claim("also with another limit", raised.made().left <= 2);

        counter other(store_, fresh(), of(10)), slower(store_, name, of(10, length / 2));
        claim("another name has counters of its own", has_left(other, 10));
        claim("another window has counters of its own", has_left(slower, 10));
    }

    void changing()
    {
        auto one  = fresh_counter(10);
        bool same = one.spend(6, start);
        one.change(of(20));
        claim("a raised limit applies at once to what is counted",
              same && one.peek(start) && one.spend(6, start) && one.made());
        one.change(of(5));
        claim("so does a lowered one", one.spend(1, start) && one.spend(5, start) && !one.made());
    }

    void naming()
    {
        using namespace std::string_view_literals;
        const auto        name = fresh();
        const std::string large(1 << 20, 'a');
        bool              same = true;
        for (const auto who :
             {""sv, "a"sv, "a\0"sv, "a\0b"sv, "\xff\xfe"sv, "'; --"sv, std::string_view(large)}) {
            counter one(store_, name, of(1), who);
            same &= one.spend(1, start) && one.made() && one.spend(1, start) && !one.made();
        }
        claim("any bytes of any length make a key, each its own", same);
    }

    /// What all threads are granted in sum, released at once, with so many asks each.
    std::uint64_t together(const Policy& limit, int asks)
    {
        std::atomic<std::uint64_t> granted = 0;
        std::latch                 ready(options_.threads);
        std::vector<std::thread>   threads;
        for (const auto name = fresh(); std::ssize(threads) < options_.threads;)
            threads.emplace_back([&, name] {
                counter one(store_, name, limit);
                ready.arrive_and_wait();
                for (int n = 0; n < asks; ++n) granted += one.answer({}, start).granted;
            });
        for (auto& thread : threads) thread.join();
        return granted;
    }

    void racing()
    {
        bool one = true;
        for (int round = 0; round < 20; ++round) one &= together(of(1), 1) == 1;
        claim("of many threads on the last place one gets it", one);
        const auto limit = std::uint64_t{10} * static_cast<unsigned>(options_.threads);
        claim("many threads are granted exactly the limit", together(of(limit), 20) == limit);
        claim("and all that they ask for within it", together(of(limit), 10) == limit);
    }

    void turning()
    {
        auto       one    = fresh_counter(10);
        const auto at     = start + length / 2;
        const bool spent  = one.spend(10, at) && one.spend(1, at) && !one.made();
        const auto quoted = at + one.made().retry_after.value_or(length);
        claim("a refused caller is refused until retry_after has passed, and no longer",
              spent && one.spend(1, quoted - duration(1)) && !one.made() && one.spend(1, quoted) &&
                  one.made());
        claim("all is back after reset_after", has_left(one, 10, quoted + one.made().reset_after));
    }

    void stepping()
    {
        auto       one   = fresh_counter(10);
        const auto later = start + 9 * length;
        claim("a clock that steps back is sat out",
              one.spend(10, later) && one.spend(1, later - length / 3) && !one.made());
        const auto ahead = start + std::chrono::hours(1) + 20 * length;
        claim("a counter that lies more than an hour ahead starts over",
              one.agree({.cost = 10, .verb = verb::charge}, ahead) && one.spend(10, start) &&
                  one.made());
    }

    void wandering()
    {
        auto             one = fresh_counter(10);
        std::minstd_rand random(20260101);
        const auto below = [&](auto most) { return random() % static_cast<std::uint64_t>(most); };
        bool       same  = true;
        for (auto [i, at] = std::pair(0, start); i < 2000 && same; ++i) {
            const auto units = below(10) + 1, callers = below(4) + 1;
            if (below(5) < 2) at += length / 64 * (static_cast<int>(below(40)) - 8);
            same = below(10) > 0 ? one.spend(units, at, callers)
                                 : one.agree({.cost = units, .verb = verb::charge}, at);
            same &= one.peek(at);
        }
        claim("2000 random asks are told what the policy's own arithmetic says", same);
    }

    Store&        store_;
    Report&       report_;
    suite_options options_;
    int           named_ = 0;
};

}  // namespace detail

template <policy Policy, class Store, class Report>
    requires store_of<Store, Policy>
void store_suite(Store& store, Report&& report, suite_options options)
{
    detail::suite<Policy, Store, Report>(store, report, options).run();
}

}  // namespace weir::testing
