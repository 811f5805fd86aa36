// SPDX-License-Identifier: BSL-1.0

// One decision in this process, against what the machine can do at best and against what people
// write by hand. All figures of a ratio come from one run, in turn, and are medians.

#include "weir/count_min_sketch.hpp"
#include "weir/store/sketch.hpp"
#include "weir/weir.hpp"

#include "reach.hpp"
#include "rivals/locked_map.hpp"
#include "rivals/two_sketches.hpp"

#include <benchmark/benchmark.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t many_keys = 1'000'000;

/// Sixteen bytes like an IPv6 address, made of the number of a client.
struct client {
    std::array<std::uint64_t, 2> words;

    explicit client(std::uint64_t number) noexcept
        : words{number * 0x9e3779b97f4a7c15, number ^ 0x20010db800000000}
    {
    }
    [[nodiscard]] std::string_view bytes() const noexcept
    {
        return {reinterpret_cast<const char*>(words.data()), sizeof words};
    }
};

/// hash × range / 2^64: a place in a range, without a division.
std::uint64_t scaled(std::uint64_t hash, std::uint64_t range) noexcept
{
    __extension__ using wide = unsigned __int128;
    return static_cast<std::uint64_t>(wide{hash} * range >> 64);
}

/// The same numbers for everybody: uniform over the clients, cheap enough not to be measured.
class draw {
public:
    explicit draw(std::uint64_t seed) noexcept : state_(seed * 2 + 1) {}
    std::uint64_t operator()() noexcept
    {
        state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
        return scaled(state_, many_keys);
    }

private:
    std::uint64_t state_;
};

/// A limiter on a full table: each client was admitted once.
template <class Policy>
struct crowd {
    weir::memory_store                        counters{{.max_keys = many_keys}};
    weir::limiter<Policy, weir::memory_store> limiter;
    weir::instant                             start = weir::now();

    explicit crowd(const Policy& limit) : limiter("bench", limit, counters)
    {
        for (std::uint64_t i = 0; i < many_keys; ++i) (void)limiter.admit(client(i), start);
    }
    static crowd& of(const Policy& limit)
    {
        static crowd all(limit);
        return all;
    }
};

// An hour, so that no client is back at rest while the bench runs; loose enough to admit.
constexpr weir::gcra           cold_gcra{.limit = 1'000'000, .window = 1h};
constexpr weir::sliding_window cold_sliding{.limit = 1'000'000, .window = 1h};

// ------------------------------------------------------------------- what the machine can do

void uncontended_cas(benchmark::State& state)
{
    std::atomic<std::uint64_t> word{0};
    for (auto _ : state) {
        auto seen = word.load(std::memory_order_relaxed);
        benchmark::DoNotOptimize(word.compare_exchange_strong(seen, seen + 1));
    }
}

void read_clock(benchmark::State& state)
{
    for (auto _ : state) {
        std::timespec now{};
        clock_gettime(CLOCK_MONOTONIC, &now);
        benchmark::DoNotOptimize(now);
    }
}

[[gnu::flatten]] weir::hash_value hash_of(const weir::hash_seed& seed, const client& who)
{
    return weir::sip_hash(seed).feed(who.bytes()).finish();
}

void sip_hash_16(benchmark::State& state)
{
    const weir::hash_seed seed{1, 2};
    std::uint64_t         number = 0;
    for (auto _ : state) {
        const auto value = hash_of(seed, client(number));
        number           = value.low & 1;  // one after the other, as decisions of one request are
        benchmark::DoNotOptimize(number);
    }
}

/// As many bytes as the store has, on the same kind of pages.
struct field {
    weir::pages<std::uint64_t> words;

    explicit field(std::size_t bytes) : words(bytes / 8)
    {
        // One cycle through all cache lines in random order (Sattolo).
        const auto               lines = words.size() / 8;
        std::vector<std::size_t> order(lines);
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::mt19937_64 random(42);
        for (auto i = lines - 1; i > 0; --i) std::swap(order[i], order[random() % i]);
        for (std::size_t i = 0; i < lines; ++i) words[order[i] * 8] = order[(i + 1) % lines] * 8;
    }
    static field& like_store()
    {
        static field all(crowd<weir::gcra>::of(cold_gcra).counters.bytes());
        return all;
    }
};

void dependent_miss(benchmark::State& state)
{
    auto&         all = field::like_store();
    std::uint64_t at  = 0;
    for (auto _ : state) benchmark::DoNotOptimize(at = all.words[at]);
}

void hash_and_fetch_add(benchmark::State& state)
{
    static field          all(crowd<weir::gcra>::of(cold_gcra).counters.bytes());
    const auto            lines = all.words.size() / 8;
    const weir::hash_seed seed{1, 2};
    draw                  next(7);
    for (auto _ : state) {
        const auto hash = hash_of(seed, client(next())).low;
        const auto line = scaled(hash, lines);
        benchmark::DoNotOptimize(__atomic_fetch_add(&all.words[line * 8], 1, __ATOMIC_RELAXED));
    }
}

void prefetched_fetch_add(benchmark::State& state)
{
    static field                all(crowd<weir::gcra>::of(cold_gcra).counters.bytes());
    const auto                  lines = all.words.size() / 8;
    const weir::hash_seed       seed{1, 2};
    draw                        next(7);
    std::array<std::size_t, 16> places{};
    while (state.KeepRunningBatch(16)) {
        for (auto& place : places) {
            const auto hash = hash_of(seed, client(next())).low;
            place           = scaled(hash, lines) * 8;
            __builtin_prefetch(&all.words[place], 1);
        }
        for (const auto place : places)
            benchmark::DoNotOptimize(__atomic_fetch_add(&all.words[place], 1, __ATOMIC_RELAXED));
    }
}

// ------------------------------------------------------------------- one hot key

/// `rate` units come back for each that is asked for: 0.1 refuses nine of ten, 10 admits all.
template <class Policy>
void hot_key(benchmark::State& state, Policy limit, weir::duration step)
{
    weir::memory_store  counters({.max_keys = 1000});
    const weir::limiter limiter("hot", limit, counters);
    const auto          who = limiter.digest("client");
    auto                at  = weir::now();
    for (auto _ : state) benchmark::DoNotOptimize(limiter.admit(who, at += step));
}

void hot_subject(benchmark::State& state)
{
    weir::memory_store  counters({.max_keys = 1000});
    const weir::limiter limiter(
        "hot", weir::gcra{.limit = 1'000'000'000, .window = 1s, .burst = 1000}, counters);
    auto          at     = weir::now();
    std::uint64_t number = 0;
    for (auto _ : state) {
        const auto made = limiter.admit(client(number), at += 1ns);
        number          = made.left == 0xffff;  // never, but known only now: as the anchor
        benchmark::DoNotOptimize(made);
    }
}

void hot_clock(benchmark::State& state)
{
    weir::memory_store  counters({.max_keys = 1000});
    const weir::limiter limiter("hot", weir::gcra{.limit = 1000, .window = 1s}, counters);
    const auto          who = limiter.digest("client");
    for (auto _ : state) benchmark::DoNotOptimize(limiter.admit(who));
}

// ------------------------------------------------------------------- a million keys

template <class Policy>
void crowd_clock(benchmark::State& state, Policy limit)
{
    auto& all = crowd<Policy>::of(limit);
    draw  next(static_cast<std::uint64_t>(state.thread_index()) + 1);
    for (auto _ : state) benchmark::DoNotOptimize(all.limiter.admit(client(next())));
    state.SetItemsProcessed(state.iterations());
}

template <class Policy>
void crowd_passed(benchmark::State& state, Policy limit)
{
    auto& all = crowd<Policy>::of(limit);
    draw  next(static_cast<std::uint64_t>(state.thread_index()) + 1);
    for (auto _ : state) benchmark::DoNotOptimize(all.limiter.admit(client(next()), all.start));
    state.SetItemsProcessed(state.iterations());
}

void crowd_many(benchmark::State& state)
{
    auto&                          all = crowd<weir::gcra>::of(cold_gcra);
    draw                           next(1);
    std::array<weir::decision, 16> made;
    while (state.KeepRunningBatch(16)) {
        std::array<client, 16> who{client(next()), client(next()), client(next()), client(next()),
                                   client(next()), client(next()), client(next()), client(next()),
                                   client(next()), client(next()), client(next()), client(next()),
                                   client(next()), client(next()), client(next()), client(next())};
        const std::array<weir::subject, 16> subjects{
            who[0], who[1], who[2],  who[3],  who[4],  who[5],  who[6],  who[7],
            who[8], who[9], who[10], who[11], who[12], who[13], who[14], who[15]};
        all.limiter.admit_many(subjects, made, all.start);
        benchmark::DoNotOptimize(made);
    }
}

template <std::size_t Shards>
void locked_map(benchmark::State& state)
{
    static auto all = [] {
        auto made = std::make_unique<rivals::locked_map<Shards>>();
        for (std::uint64_t i = 0; i < many_keys; ++i)
            (void)made->admit(client(i).bytes(), 1e9, 1e6);
        return made;
    }();
    draw next(1);
    for (auto _ : state) benchmark::DoNotOptimize(all->admit(client(next()).bytes(), 1e9, 1e6));
}

// ------------------------------------------------------------------- sketches

void plain_sketches(benchmark::State& state)
{
    rivals::two_sketches all(1024);
    draw                 next(3);
    for (auto _ : state) benchmark::DoNotOptimize(all.observe(client(next()).bytes()));
}

void our_sketch(benchmark::State& state)
{
    weir::count_min_sketch all({.width = 1024, .depth = 4});
    const weir::digest     digest(weir::hash_seed{1, 2}, 200, "bench", 1s);
    draw                   next(3);
    for (auto _ : state) benchmark::DoNotOptimize(all.raise(digest(client(next())), 1));
}

/// As a limiter meets it that has the key already.
void our_sketch_digested(benchmark::State& state)
{
    weir::count_min_sketch all({.width = 1024, .depth = 4});
    draw                   next(3);
    for (auto _ : state) {
        const auto number = next();
        benchmark::DoNotOptimize(
            all.raise({number * 0x9e3779b97f4a7c15, number * 0xa0761d6478bd642f}, 1));
    }
}

void our_sketch_store(benchmark::State& state)
{
    weir::sketch_store  counters({.size = {.width = 1024, .depth = 4}});
    const weir::limiter limiter("bench", cold_sliding, counters);
    const auto          at = weir::now();
    draw                next(3);
    for (auto _ : state) benchmark::DoNotOptimize(limiter.admit(client(next()), at));
}

// ------------------------------------------------------------------- instructions

/// Runs `decisions` sliding decisions from subjects, all admitted: what callgrind counts.
int only_decide(std::uint64_t decisions)
{
    weir::memory_store  counters({.max_keys = 1000});
    const weir::limiter limiter("bench", cold_sliding, counters);
    const auto          at       = weir::now();
    std::uint64_t       admitted = 0;
    for (std::uint64_t i = 0; i < decisions; ++i)
        admitted += bool(limiter.admit(client(i % 256), at));
    return admitted == decisions ? 0 : 1;
}

/// Instructions that this program executes for so many decisions; 0 without valgrind.
double counted_instructions(const char* self, std::uint64_t decisions)
{
    const auto command = "valgrind --tool=callgrind --callgrind-out-file=/dev/null '" +
                         std::string(self) + "' --only-decide=" + std::to_string(decisions) +
                         " 2>&1";
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> output(popen(command.c_str(), "r"),
                                                                 &pclose);
    char                                                  line[512];
    double                                                count = 0;
    while (output && std::fgets(line, sizeof line, output.get()))
        if (const char* at = std::strstr(line, "Collected : "))
            count = std::strtod(at + 12, nullptr);
    return count;
}

/// Infinite where valgrind is missing, so that what was not counted is not called good.
double instructions_a_decision(const char* self)
{
    const auto many = counted_instructions(self, 110'000), few = counted_instructions(self, 10'000);
    return few > 0 ? (many - few) / 100'000 : std::numeric_limits<double>::infinity();
}

void register_all()
{
    using benchmark::RegisterBenchmark;
    RegisterBenchmark("clock_gettime", read_clock);
    RegisterBenchmark("hot_clock_inside", hot_clock);
    RegisterBenchmark("dependent_miss", dependent_miss);
    RegisterBenchmark("crowd_clock_inside/gcra", crowd_clock<weir::gcra>, cold_gcra);
    RegisterBenchmark("crowd_clock_inside/sliding", crowd_clock<weir::sliding_window>,
                      cold_sliding);
    RegisterBenchmark("locked_map", locked_map<1>);
    RegisterBenchmark("locked_map_64", locked_map<64>);

    RegisterBenchmark("uncontended_cas", uncontended_cas);
    RegisterBenchmark("hot_gcra_refused", hot_key<weir::gcra>,
                      weir::gcra{.limit = 100'000'000, .window = 1s, .burst = 10}, 1ns);
    RegisterBenchmark("hot_gcra_admitted", hot_key<weir::gcra>,
                      weir::gcra{.limit = 1'000'000'000, .window = 1s, .burst = 10}, 10ns);
    RegisterBenchmark("hot_sliding_admitted", hot_key<weir::sliding_window>,
                      weir::sliding_window{.limit = 8'000'000'000, .window = 1s}, 1ns);
    RegisterBenchmark("sip_hash_16", sip_hash_16);
    RegisterBenchmark("hot_subject", hot_subject);
    RegisterBenchmark("hash_and_fetch_add", hash_and_fetch_add);
    RegisterBenchmark("crowd_passed/gcra", crowd_passed<weir::gcra>, cold_gcra);
    RegisterBenchmark("crowd_passed/sliding", crowd_passed<weir::sliding_window>, cold_sliding);
    RegisterBenchmark("prefetched_fetch_add", prefetched_fetch_add);
    RegisterBenchmark("crowd_admit_many", crowd_many);
    RegisterBenchmark("two_threads_1", crowd_passed<weir::gcra>, cold_gcra)->UseRealTime();
    RegisterBenchmark("two_threads_2", crowd_passed<weir::gcra>, cold_gcra)
        ->UseRealTime()
        ->Threads(2);

    RegisterBenchmark("plain_sketches", plain_sketches);
    RegisterBenchmark("count_min_sketch", our_sketch);
    RegisterBenchmark("count_min_sketch_digested", our_sketch_digested);
    RegisterBenchmark("sketch_store/sliding", our_sketch_store);
}

void compare(const bench::medians& run, const char* self)
{
    using bench::goal;
    const auto ratio = [&](const char* ours, const char* anchor) {
        return run.time(ours) / run.time(anchor);
    };
    bench::reach("hot_clock_inside/clock_gettime", ratio("hot_clock_inside", "clock_gettime"),
                 goal::at_most, 1.6);
    bench::reach("crowd_clock_inside/dependent_miss",
                 ratio("crowd_clock_inside/gcra", "dependent_miss"), goal::at_most, 1.4);
    bench::reach("locked_map/crowd_clock_inside", ratio("locked_map", "crowd_clock_inside/gcra"),
                 goal::at_least, 5);
    bench::reach("locked_map_64/crowd_clock_inside",
                 ratio("locked_map_64", "crowd_clock_inside/gcra"), goal::at_least, 3);
    bench::reach("hot_gcra_refused/cas", ratio("hot_gcra_refused", "uncontended_cas"),
                 goal::at_most, 3);
    bench::reach("hot_gcra_admitted/cas", ratio("hot_gcra_admitted", "uncontended_cas"),
                 goal::at_most, 3);
    bench::reach("hot_subject-sip_hash_16_ns", run.time("hot_subject") - run.time("sip_hash_16"),
                 goal::at_most, 12);
    bench::reach("crowd_passed_gcra/fetch_add", ratio("crowd_passed/gcra", "hash_and_fetch_add"),
                 goal::at_most, 2.2);
    bench::reach("crowd_passed_sliding/fetch_add",
                 ratio("crowd_passed/sliding", "hash_and_fetch_add"), goal::at_most, 3);
    bench::reach("crowd_passed_gcra/fetch_add_stretch",
                 ratio("crowd_passed/gcra", "hash_and_fetch_add"), goal::at_most, 1.8);
    bench::reach("admit_many/prefetched_fetch_add",
                 ratio("crowd_admit_many", "prefetched_fetch_add"), goal::at_most, 2);
    bench::reach("two_threads/one",
                 run.rate("two_threads_2/two_threads") / run.rate("two_threads_1"), goal::at_least,
                 1.6);
    bench::reach("bytes_a_key",
                 static_cast<double>(crowd<weir::gcra>::of(cold_gcra).counters.bytes()) / many_keys,
                 goal::at_most, 40);
    bench::reach("count_min_sketch_digested_ns", run.time("count_min_sketch_digested"),
                 goal::at_most, 30);
    bench::reach("count_min_sketch_digested/plain_sketches",
                 ratio("count_min_sketch_digested", "plain_sketches"), goal::at_most, 0.7);
    bench::reach("count_min_sketch_ns", run.time("count_min_sketch"), goal::at_most, 30);
    bench::reach("count_min_sketch/plain_sketches", ratio("count_min_sketch", "plain_sketches"),
                 goal::at_most, 0.7);
    bench::reach("instructions_a_decision", instructions_a_decision(self), goal::at_most, 300);
}

}  // namespace

int main(int argc, char** argv)
{
    if (argc == 2 && std::strncmp(argv[1], "--only-decide=", 14) == 0)
        return only_decide(std::strtoull(argv[1] + 14, nullptr, 10));
    register_all();
    const auto medians = bench::run(argc, argv);
    compare(medians, argv[0]);
}
