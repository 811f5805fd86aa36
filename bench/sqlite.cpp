// SPDX-License-Identifier: BSL-1.0

// Decisions a second on one file, by how many threads ask at once; each waits for its answer.

#include "weir/sqlite/store.hpp"

#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "weir/limiter.hpp"

namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t never = std::uint64_t{1} << 40;

/// A new file for each figure, in the folder for temporary files.
class counted {
public:
    counted(weir::sqlite::durability survives, std::uint64_t most)
        : path_(std::filesystem::temp_directory_path() /
                ("weir-bench-" + std::to_string(std::rand()) + ".db")),
          counters_({.path = path_, .secret = "bench", .deadline = 10s, .survives = survives}),
          limit_("bench", weir::fixed_window{.limit = most, .window = 24h}, counters_)
    {
    }
    ~counted()
    {
        for (const auto* const part : {"", "-wal", "-shm"}) std::filesystem::remove(path_ + part);
    }
    counted(const counted&)            = delete;
    counted& operator=(const counted&) = delete;

    bool admit(std::uint64_t who) const { return bool(limit_.admit(std::to_string(who))); }

private:
    std::string                                           path_;
    weir::sqlite::store                                   counters_;
    weir::limiter<weir::fixed_window, weir::sqlite::store> limit_;
};

std::unique_ptr<counted> shared;

void ask(benchmark::State& state, weir::sqlite::durability survives, std::uint64_t most)
{
    if (state.thread_index() == 0) shared = std::make_unique<counted>(survives, most);
    auto          who   = static_cast<std::uint64_t>(state.thread_index()) * 0x9e3779b97f4a7c15;
    std::uint64_t given = 0;
    for (auto _ : state) {
        who = who * 6364136223846793005 + 1442695040888963407;
        given += shared->admit(most == never ? (who >> 33) % 10'000 : 0);
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
    benchmark::DoNotOptimize(given);
    if (state.thread_index() == 0) shared.reset();
}

using weir::sqlite::durability;

BENCHMARK_CAPTURE(ask, admitted, durability::process, never)
    ->Threads(1)
    ->Threads(8)
    ->Threads(64)
    ->UseRealTime();
BENCHMARK_CAPTURE(ask, refused, durability::process, 1)
    ->Threads(1)
    ->Threads(8)
    ->Threads(64)
    ->UseRealTime();
BENCHMARK_CAPTURE(ask, admitted_for_good, durability::machine, never)
    ->Threads(1)
    ->Threads(8)
    ->Threads(64)
    ->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
