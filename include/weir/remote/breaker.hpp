// SPDX-License-Identifier: BSL-1.0
#pragma once

// Stops asking who does not answer: after some failures in a row nobody asks but one probe in each
// pause, so that an outage costs its callers no deadline each and the store no crowd when it is
// back.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

#include "weir/sip_hash.hpp"

namespace weir::remote {

struct breaker_options {
    std::uint32_t            failures = 5;  ///< In a row; then it opens. 0 counts as 1.
    std::chrono::nanoseconds pause = std::chrono::milliseconds(500);  ///< Between probes, ±20 %.
};

/// Of one connection. One word holds all: how many failures in a row, or, open, when the next probe
/// may go. Thread-safe and lock-free; closed, an ask costs a relaxed load. It publishes nothing
/// else, so all is relaxed.
class breaker {
public:
    using time_point = std::chrono::steady_clock::time_point;

    /// Each breaker of each process draws its pauses differently, lest all probe at one moment.
    explicit breaker(const breaker_options& options = {})
        : breaker(options, hash_seed::of_process().low ^ reinterpret_cast<std::uintptr_t>(this))
    {
    }
    breaker(const breaker_options& options, std::uint64_t seed) noexcept
        : options_(options), drawn_(seed)
    {
    }
    breaker(const breaker&)            = delete;
    breaker& operator=(const breaker&) = delete;

    /// Whether to ask. Open: true for exactly one of those who come after the pause, and its pause
    /// begins; whether it reports or not, the next probe goes after that.
    [[nodiscard]] bool allow(time_point at) noexcept;

    /// True if this one closed it. Any answer does: a late one shows as well that somebody is
    /// there.
    bool succeeded() noexcept;

    /// True if this one opened it.
    bool failed(time_point at) noexcept;

    [[nodiscard]] bool open() const noexcept
    {
        return !closed(word_.load(std::memory_order_relaxed));
    }

private:
    // Failures count up from the least number; instants of a running clock lie far above.
    static constexpr std::int64_t none    = std::numeric_limits<std::int64_t>::min();
    static constexpr std::int64_t highest = none + std::numeric_limits<std::uint32_t>::max();

    static constexpr bool closed(std::int64_t word) noexcept { return word <= highest; }

    std::int64_t after_pause(time_point at) noexcept;

    breaker_options            options_;
    std::atomic<std::int64_t>  word_{none};
    std::atomic<std::uint64_t> drawn_;
};

// ---------------------------------------------------------------------------------------------

inline bool breaker::allow(time_point at) noexcept
{
    auto word = word_.load(std::memory_order_relaxed);
    if (closed(word)) [[likely]]
        return true;
    if (at.time_since_epoch().count() < word) return false;
    if (word_.compare_exchange_strong(word, after_pause(at), std::memory_order_relaxed))
        return true;
    return closed(word);  // it was closed meanwhile, or another one probes
}

inline bool breaker::succeeded() noexcept
{
    if (word_.load(std::memory_order_relaxed) == none) [[likely]]
        return false;
    return !closed(word_.exchange(none, std::memory_order_relaxed));
}

inline bool breaker::failed(time_point at) noexcept
{
    const auto most = static_cast<std::int64_t>(options_.failures);
    auto       word = word_.load(std::memory_order_relaxed);
    for (std::int64_t next = 0; closed(word);) {
        const bool opens = word + 1 - none >= most;
        next             = opens ? after_pause(at) : word + 1;
        if (word_.compare_exchange_weak(word, next, std::memory_order_relaxed)) return opens;
    }
    return false;
}

/// The pause times 0.8 … 1.2, drawn by splitmix64 (Steele, Lea, Flood: "Fast splittable
/// pseudorandom number generators", 2014), which any number of threads can step.
inline std::int64_t breaker::after_pause(time_point at) noexcept
{
    constexpr std::uint64_t step  = 0x9e3779b97f4a7c15;
    auto                    drawn = drawn_.fetch_add(step, std::memory_order_relaxed) + step;
    drawn                         = (drawn ^ drawn >> 30) * 0xbf58476d1ce4e5b9;
    drawn                         = (drawn ^ drawn >> 27) * 0x94d049bb133111eb;
    drawn ^= drawn >> 31;
    const auto share = static_cast<std::int64_t>(800 + drawn % 401);  // thousandths
    const auto pause = options_.pause / 1'000 * share;
    return (at + std::chrono::duration_cast<time_point::duration>(pause))
        .time_since_epoch()
        .count();
}

}  // namespace weir::remote
