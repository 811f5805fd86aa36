// SPDX-License-Identifier: BSL-1.0

// What a guarded try costs, claim and outcome, beside one admit on the same store: memory, and
// PostgreSQL where WEIR_POSTGRES names one, in a schema weir_bench that stays there.

#include "weir/signin/sign_in.hpp"
#include "weir/weir.hpp"

#if __has_include("weir/postgres/store.hpp")
#include "weir/postgres/store.hpp"
#define WEIR_BENCH_POSTGRES 1
#endif

#include "reach.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t users = 100'000;

/// Sixteen bytes, as admit.cpp has its clients.
struct user {
    std::array<std::uint64_t, 2> words;

    explicit user(std::uint64_t number) noexcept
        : words{number * 0x9e3779b97f4a7c15, number ^ 0x20010db800000000}
    {
    }
    [[nodiscard]] std::string_view bytes() const noexcept
    {
        return {reinterpret_cast<const char*>(words.data()), sizeof words};
    }
};

/// Everybody in turn, far apart in memory.
std::uint64_t next(std::uint64_t& state) { return state = (state + 61'803) % users; }

constexpr weir::sliding_window plenty{.limit = 1'000'000, .window = 1h};

/// A limiter, a guard and a guard with a tier on one store, each of which knows all users.
struct hall {
    weir::memory_store                                      counters{{.max_keys = users}};
    weir::limiter<weir::sliding_window, weir::memory_store> limiter{"bench", plenty, counters};
    weir::guard<weir::memory_store> door{"bench", weir::lockout{}, counters};
    weir::guard<weir::memory_store> tiers{
        "tiers",
        weir::lockout{},
        counters,
        {.tiers = {{.failures = 20, .window = 24h, .first = 24h, .longest = 24h}}}};
    weir::instant start = weir::now();

    hall()
    {
        for (std::uint64_t n = 0; n < users; ++n) {
            (void)limiter.admit(user(n), start);
            (void)door.claim(user(n), start);
            (void)tiers.claim(user(n), start);
        }
    }
    static hall& open()
    {
        static hall all;
        return all;
    }
};

void admit(benchmark::State& state)
{
    auto&         all = hall::open();
    std::uint64_t who = 0;
    for (auto _ : state) benchmark::DoNotOptimize(all.limiter.admit(user(next(who))));
    state.SetItemsProcessed(state.iterations());
}

void claim_and_success(benchmark::State& state)
{
    auto&         all = hall::open();
    std::uint64_t who = 0;
    for (auto _ : state) all.door.claim(user(next(who))).succeeded();
    state.SetItemsProcessed(state.iterations());
}

/// No two failures of one user within a window, so that each is admitted.
void claim_and_failure(benchmark::State& state)
{
    auto&         all = hall::open();
    std::uint64_t who = 0;
    static auto   at  = all.start + 24h;
    for (auto _ : state)
        benchmark::DoNotOptimize(all.door.claim(user(next(who)), at += 20ms).failed());
    state.SetItemsProcessed(state.iterations());
}

void claim_while_locked(benchmark::State& state)
{
    auto&      all = hall::open();
    const auto at  = all.start;
    for (int n = 0; n < 5; ++n) (void)all.door.claim("locked", at);
    for (auto _ : state) benchmark::DoNotOptimize(bool(all.door.claim("locked", at)));
    state.SetItemsProcessed(state.iterations());
}

void tiers_claim_and_success(benchmark::State& state)
{
    auto&         all = hall::open();
    std::uint64_t who = 0;
    for (auto _ : state) all.tiers.claim(user(next(who))).succeeded();
    state.SetItemsProcessed(state.iterations());
}

void compare(const bench::medians& of)
{
    std::printf("\nclaims with their outcome a second, memory: %.0f\n\n",
                of.rate("claim_and_success"));
    const auto ratio = [&](const char* name) { return of.time(name) / of.time("admit"); };
    bench::reach("memory_success_to_admit", ratio("claim_and_success"), bench::goal::at_most, 2);
    bench::reach("memory_failure_to_admit", ratio("claim_and_failure"), bench::goal::at_most, 2);
}

#if defined(WEIR_BENCH_POSTGRES)

/// Microseconds of one `once()`, of so many.
template <class Once>
double micros_of(int count, Once&& once)
{
    const auto begin = std::chrono::steady_clock::now();
    for (int n = 0; n < count; ++n) once(n);
    const std::chrono::duration<double, std::micro> taken =
        std::chrono::steady_clock::now() - begin;
    return taken.count() / count;
}

double median(std::vector<double> all)
{
    std::ranges::sort(all);
    return all[all.size() / 2];
}

/// One caller who waits for each answer, in turn with the others, eleven times.
void on_postgres(const char* conninfo)
{
    weir::postgres::store counters({.conninfo   = conninfo,
                                    .key_secret = "a secret of thirty-two bytes....",
                                    .deadline   = 10s,
                                    .schema     = "weir_bench"});
    const weir::limiter   limiter("bench", plenty, counters);
    const weir::guard     door("bench", weir::lockout{}, counters);
    constexpr int         turns = 11, asks = 300;
    std::vector<double>   admits, successes, failures;
    for (int turn = 0; turn < turns; ++turn) {
        const auto name = [&](int n) { return std::to_string(turn) + "." + std::to_string(n); };
        admits.push_back(micros_of(asks, [&](int n) { (void)limiter.admit(name(n)); }));
        successes.push_back(micros_of(asks, [&](int n) { door.claim(name(n)).succeeded(); }));
        failures.push_back(micros_of(asks, [&](int n) { door.claim(name(n)).failed(); }));
    }
    const auto one = median(admits), taken_back = median(successes), left = median(failures);
    std::printf("\n%-36s %10.1f us\n%-36s %10.1f us\n%-36s %10.1f us\n\n", "postgres_admit", one,
                "postgres_claim_and_success", taken_back, "postgres_claim_and_failure", left);
    bench::reach("postgres_success_to_admit", taken_back / one, bench::goal::at_most, 2);
    bench::reach("postgres_failure_to_admit", left / one, bench::goal::at_most, 2);
}

#endif

}  // namespace

int main(int argc, char** argv)
{
    benchmark::RegisterBenchmark("admit", admit);
    benchmark::RegisterBenchmark("claim_and_success", claim_and_success);
    benchmark::RegisterBenchmark("claim_and_failure", claim_and_failure);
    benchmark::RegisterBenchmark("claim_while_locked", claim_while_locked);
    benchmark::RegisterBenchmark("tiers_claim_and_success", tiers_claim_and_success);
    compare(bench::run(argc, argv));
#if defined(WEIR_BENCH_POSTGRES)
    if (const char* const named = std::getenv("WEIR_POSTGRES")) on_postgres(named);
    else std::puts("PostgreSQL is not measured: WEIR_POSTGRES names none");
#endif
}
