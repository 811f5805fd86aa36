// SPDX-License-Identifier: BSL-1.0
#pragma once

// Threads that run one at a time and change places where a seed says so. What a race needs to come
// out on a busy machine is luck; here it is a number. They change places only where the code under
// test calls `step`.

#include "race/crew.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <random>
#include <thread>

namespace race {

class stepper {
public:
    /// Runs `work(thread)` on all threads, in an order of steps drawn from `seed`; then
    /// `judge(seed)` alone. Does so for the seeds 0 … `seeds` - 1.
    template <class Work, class Judge>
    void explore(std::size_t threads, std::size_t seeds, Work&& work, Judge&& judge)
    {
        begin(threads, 0);
        all_at_once(
            threads, seeds,
            [&](std::size_t thread, std::size_t) {
                take_part(this, thread);
                wait_for_turn(thread);
                work(thread);
                leave(thread);
                take_part(nullptr, 0);
            },
            [&](std::size_t seed) {
                judge(seed);
                begin(threads, seed + 1);
            });
    }

    /// A place where threads may change; nothing on a thread that takes no part.
    static void step()
    {
        if (mine == nullptr || mine->draw_() % mine->rarity_ != 0) return;
        const auto here = me;
        mine->pass_on();
        mine->wait_for_turn(here);
    }

private:
    static inline thread_local stepper*    mine = nullptr;
    static inline thread_local std::size_t me   = 0;

    static void take_part(stepper* in, std::size_t thread) { mine = in, me = thread; }

    /// Threads change often or seldom: some races need few changes, in odd places.
    void begin(std::size_t threads, std::size_t seed)
    {
        draw_.seed(static_cast<unsigned>(seed + 1));
        rarity_  = 4U << seed % 4;
        running_ = (std::uint64_t{1} << threads) - 1;
        pass_on();
    }

    void wait_for_turn(std::size_t thread)
    {
        for (int spins = 0; turn_.load(std::memory_order_acquire) != thread; ++spins)
            if (spins > 100) std::this_thread::yield();
    }

    void leave(std::size_t thread)
    {
        running_ &= ~(std::uint64_t{1} << thread);
        if (running_ != 0) pass_on();
    }

    /// To any thread that is not done, perhaps the same.
    void pass_on()
    {
        std::size_t to = draw_() % 64;
        while ((running_ >> to & 1) == 0) to = (to + 1) % 64;
        turn_.store(to, std::memory_order_release);
    }

    // Only who has the turn touches these.
    std::minstd_rand draw_;
    unsigned         rarity_  = 2;
    std::uint64_t    running_ = 0;

    std::atomic<std::size_t> turn_{0};
};

}  // namespace race
