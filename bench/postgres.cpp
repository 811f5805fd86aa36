// SPDX-License-Identifier: BSL-1.0

// One load on the store on PostgreSQL: weir-bench-postgres CONNINFO LOAD KEYS CALLERS SECONDS.
//   blocking   so many threads, each asks and waits
//   callback   so many asks outstanding, each followed by another when it is answered
//   set        so many threads, each asks for two keys at once, all or nothing
//   flood      so many threads on keys whose limit is spent
// Prints: decisions/s, p50 and p99 of a decision in µs, decisions/s and core that the load used.
// WEIR_UNLOGGED makes an unlogged table, WEIR_NAMED names statements.
// postgres.py runs it beside pgbench.

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "weir/admit_all.hpp"
#include "weir/limiter.hpp"
#include "weir/postgres/store.hpp"

namespace {

using namespace std::chrono_literals;
using bench_clock = std::chrono::steady_clock;

struct load {
    std::uint64_t        keys    = 1;
    int                  callers = 1;
    std::chrono::seconds length  = 2s;
};

weir::postgres::store_options options(const char* conninfo)
{
    return {.conninfo         = conninfo,
            .key_secret       = "a secret of thirty-two bytes....",
            .deadline         = 10s,
            .survives         = std::getenv("WEIR_UNLOGGED") ? weir::postgres::durability::unlogged
                                                             : weir::postgres::durability::logged,
            .named_statements = std::getenv("WEIR_NAMED") != nullptr};
}

/// Enough that nothing is refused, so that each decision has to ask.
constexpr weir::fixed_window plenty{.limit = 1'000'000'000'000, .window = 1h};
constexpr weir::fixed_window little{.limit = 1, .window = 24h};

std::string name_of(std::uint64_t key) { return "198.51." + std::to_string(key); }

double cpu_seconds()
{
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// What all threads saw together.
struct outcome {
    std::uint64_t      decisions = 0;
    double             seconds   = 0;
    double             cpu       = 0;
    std::vector<float> micros;
};

void print(outcome& seen)
{
    std::ranges::sort(seen.micros);
    const auto at = [&](double share) {
        return seen.micros.empty() ? 0.0
                                   : seen.micros[static_cast<std::size_t>(
                                         share * static_cast<double>(seen.micros.size() - 1))];
    };
    std::printf("%.0f %.1f %.1f %.0f\n", static_cast<double>(seen.decisions) / seen.seconds,
                static_cast<double>(at(0.5)), static_cast<double>(at(0.99)),
                static_cast<double>(seen.decisions) / seen.cpu);
}

/// So many threads call `once(random)` until the time is over.
template <class Once>
outcome by_threads(const load& of, bool times, Once&& once)
{
    std::atomic<bool>               over = false;
    std::vector<std::vector<float>> micros(static_cast<std::size_t>(of.callers));
    std::vector<std::uint64_t>      counts(micros.size());
    std::vector<std::thread>        threads;
    const auto                      cpu   = cpu_seconds();
    const auto                      begin = bench_clock::now();
    for (std::size_t n = 0; n < micros.size(); ++n)
        threads.emplace_back([&, n] {
            std::minstd_rand random(static_cast<unsigned>(n) + 1);
            std::uint64_t    count = 0;
            for (; !over.load(std::memory_order_relaxed); ++count) {
                const auto asked = times ? bench_clock::now() : bench_clock::time_point{};
                once(random);
                if (times)
                    micros[n].push_back(
                        std::chrono::duration<float, std::micro>(bench_clock::now() - asked)
                            .count());
            }
            counts[n] = count;
        });
    std::this_thread::sleep_for(of.length);
    over = true;
    for (auto& thread : threads) thread.join();
    outcome seen{.seconds = std::chrono::duration<double>(bench_clock::now() - begin).count(),
                 .cpu     = cpu_seconds() - cpu,
                 .micros  = {}};
    for (const auto count : counts) seen.decisions += count;
    for (const auto& one : micros) seen.micros.insert(seen.micros.end(), one.begin(), one.end());
    return seen;
}

outcome blocking(weir::postgres::store& counters, const load& of)
{
    const weir::limiter limiter("bench", plenty, counters);
    return by_threads(of, true, [&](auto& random) {
        if (!limiter.admit(name_of(random() % of.keys))) std::abort();
    });
}

outcome sets(weir::postgres::store& counters, const load& of)
{
    const weir::limiter ip("bench.ip", plenty, counters), user("bench.user", plenty, counters);
    return by_threads(of, true, [&](auto& random) {
        if (!weir::admit_all({ip(name_of(random() % of.keys)), user(name_of(random() % of.keys))}))
            std::abort();
    });
}

outcome flood(weir::postgres::store& counters, const load& of)
{
    const weir::limiter      limiter("bench.flood", little, counters);
    std::vector<std::string> names;
    for (std::uint64_t key = 0; key < of.keys; ++key) {
        names.push_back(name_of(key));
        (void)limiter.admit(names.back());
    }
    return by_threads(of, false, [&](auto& random) {
        if (limiter.admit(names[random() % of.keys])) std::abort();
    });
}

/// Each answer asks again; how long one took is not measured.
class asker {
public:
    asker(weir::postgres::store& counters, const load& of)
        : limiter_("bench", plenty, counters), of_(of)
    {
    }

    outcome run()
    {
        const auto cpu   = cpu_seconds();
        const auto begin = bench_clock::now();
        for (int n = 0; n < of_.callers; ++n) ask(static_cast<unsigned>(n) * 7'919 + 1);
        std::this_thread::sleep_for(of_.length);
        over_ = true;
        while (under_way_ > 0) std::this_thread::yield();
        return {.decisions = answered_,
                .seconds   = std::chrono::duration<double>(bench_clock::now() - begin).count(),
                .cpu       = cpu_seconds() - cpu,
                .micros    = {}};
    }

private:
    void ask(unsigned seed)
    {
        ++under_way_;
        std::minstd_rand random(seed);
        const auto       next = static_cast<unsigned>(random());
        limiter_.admit_then(of_.keys == 1 ? "198.51.0" : name_of(next % of_.keys),
                            [this, next](const weir::decision& made) {
                                if (!made) std::abort();
                                ++answered_;
                                if (!over_.load(std::memory_order_relaxed)) ask(next);
                                --under_way_;
                            });
    }

    weir::limiter<weir::fixed_window, weir::postgres::store> limiter_;
    load                                                     of_;
    std::atomic<bool>                                        over_      = false;
    std::atomic<std::uint64_t>                               answered_  = 0;
    std::atomic<int>                                         under_way_ = 0;
};

}  // namespace

int main(int argc, char** argv)
{
    if (argc != 6) {
        std::fputs(
            "weir-bench-postgres CONNINFO blocking|callback|set|flood KEYS CALLERS SECONDS\n",
            stderr);
        return 2;
    }
    const std::string_view kind = argv[2];
    const load             of{.keys    = std::strtoull(argv[3], nullptr, 10),
                              .callers = std::atoi(argv[4]),
                              .length  = std::chrono::seconds(std::atoi(argv[5]))};
    weir::postgres::store  counters(options(argv[1]));
    outcome                seen;
    if (kind == "blocking") seen = blocking(counters, of);
    else if (kind == "callback") seen = asker(counters, of).run();
    else if (kind == "set") seen = sets(counters, of);
    else if (kind == "flood") seen = flood(counters, of);
    else return 2;
    print(seen);
}
