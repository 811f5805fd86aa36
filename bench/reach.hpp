// SPDX-License-Identifier: BSL-1.0
#pragma once

// Runs the benchmarks in turn, prints their medians as a table, and compares figures with goals.

#include <benchmark/benchmark.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace bench {

/// The medians of one run, in nanoseconds of processor time an operation, or operations a second
/// for those that count items.
class medians : public benchmark::ConsoleReporter {
public:
    medians() : ConsoleReporter(OO_None) {}

    void ReportRuns(const std::vector<Run>& runs) override
    {
        for (const auto& run : runs) {
            if (run.run_type != Run::RT_Aggregate || run.aggregate_name != "median") continue;
            const auto name = run.run_name.function_name + (run.threads > 1 ? "/two_threads" : "");
            time_[name]     = run.GetAdjustedCPUTime();
            if (const auto items = run.counters.find("items_per_second");
                items != run.counters.end())
                rate_[name] = items->second;
            std::printf("%-36s %10.1f ns\n", name.c_str(), time_[name]);
            std::fflush(stdout);
        }
    }

    [[nodiscard]] double time(const std::string& name) const { return time_.at(name); }
    [[nodiscard]] double rate(const std::string& name) const { return rate_.at(name); }

private:
    std::map<std::string, double> time_, rate_;
};

/// Runs all that is registered: seven repetitions in random order, so that a noisy moment of the
/// machine meets every side of a ratio.
inline medians run(int argc, char** argv)
{
    std::vector<char*>       words(argv, argv + argc);
    std::vector<std::string> ours{
        "--benchmark_repetitions=7", "--benchmark_enable_random_interleaving=true",
        "--benchmark_min_time=0.15", "--benchmark_report_aggregates_only=true"};
    for (auto& word : ours) words.insert(words.begin() + 1, word.data());
    int count = static_cast<int>(words.size());
    benchmark::Initialize(&count, words.data());
    medians all;
    benchmark::RunSpecifiedBenchmarks(&all);
    return all;
}

enum class goal { at_most, at_least };

/// One line of the verdict: `reach FIGURE VALUE GOAL ok|short`.
inline void reach(const char* figure, double value, goal kind, double bound)
{
    const bool ok = kind == goal::at_most ? value <= bound : value >= bound;
    std::printf("reach %s %.2f %s%.2f %s\n", figure, value,
                kind == goal::at_most ? "<=" : ">=", bound, ok ? "ok" : "short");
}

}  // namespace bench
