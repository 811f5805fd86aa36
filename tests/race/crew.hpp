// SPDX-License-Identifier: BSL-1.0
#pragma once

// Threads that do the same thing at the same moment, again and again.

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#if defined(__SANITIZE_THREAD__)
#define WEIR_RACE_SLOWLY 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEIR_RACE_SLOWLY 1
#endif
#endif

namespace race {

/// As many rounds, or a tenth of them under the thread sanitizer, which is that much slower.
constexpr std::size_t many(std::size_t rounds)
{
#if defined(WEIR_RACE_SLOWLY)
    return rounds / 10;
#else
    return rounds;
#endif
}

/// Where all threads meet. The first wait by spinning, so that two of them leave at once; on a
/// machine with fewer processors than threads the others get their turn.
class meeting {
public:
    explicit meeting(std::size_t threads) : threads_(threads) {}

    /// `alone()` runs on the last to come, before anybody goes on.
    template <class Alone>
    void wait(Alone&& alone)
    {
        const auto turn = turn_.load(std::memory_order_acquire);
        if (here_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
            alone();
            here_.store(0, std::memory_order_relaxed);
            turn_.store(turn + 1, std::memory_order_release);
            return;
        }
        for (int spins = 0; turn_.load(std::memory_order_acquire) == turn; ++spins)
            if (spins > 500) std::this_thread::yield();
    }

private:
    std::size_t threads_;

    alignas(64) std::atomic<std::size_t> here_{0};
    alignas(64) std::atomic<std::size_t> turn_{0};
};

/// Up to some hundred nanoseconds, different for each thread and round: the last to come leaves the
/// meeting before the others see it, and would always be a step ahead.
inline void stagger(std::size_t thread, std::size_t round)
{
    const auto mixed = (thread * 7919 + round) * 0x9e3779b97f4a7c15;
    for (auto left = mixed >> 55; left > 0; --left)
        std::atomic_signal_fence(std::memory_order_seq_cst);
}

/// Runs `work(thread, round)` on all threads at once, `rounds` times; `judge(round)` runs alone
/// after each round. Neither may throw: count what is wrong, and check the count afterwards.
template <class Work, class Judge>
void all_at_once(std::size_t threads, std::size_t rounds, Work&& work, Judge&& judge)
{
    meeting                  end(threads);
    std::vector<std::thread> crew;
    for (std::size_t thread = 0; thread < threads; ++thread)
        crew.emplace_back([&, thread] {
            for (std::size_t round = 0; round < rounds; ++round) {
                stagger(thread, round);
                work(thread, round);
                end.wait([&] { judge(round); });
            }
        });
    for (auto& one : crew) one.join();
}

}  // namespace race
