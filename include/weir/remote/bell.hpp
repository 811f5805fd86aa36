// SPDX-License-Identifier: BSL-1.0
#pragma once

// What one thread waits on until another rings or a deadline comes. One word on Linux, where a
// hundred callers are woken in a row after each round trip.

#include <atomic>
#include <chrono>
#include <cstdint>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#else
#include <condition_variable>
#include <mutex>
#endif

namespace weir::remote {

/// One thread waits, any may ring. Once rung it stays so until `reset`. It may be destroyed as soon
/// as a wait returned true, also while `ring` has not returned yet.
class bell {
public:
    using time_point = std::chrono::steady_clock::time_point;

    void ring() noexcept;

    /// True if it was rung, false if `until` came first.
    bool wait(time_point until) noexcept;

    /// Until it is rung.
    void wait() noexcept
    {
        while (!wait(std::chrono::steady_clock::now() + std::chrono::hours(1))) {}
    }

    /// By the thread that waits.
    void reset() noexcept;

private:
#if defined(__linux__)
    std::atomic<std::uint32_t> rung_ = 0;
#else
    std::mutex              mutex_;
    std::condition_variable changed_;
    bool                    rung_ = false;
#endif
};

// ---------------------------------------------------------------------------------------------

#if defined(__linux__)

/// The word may be gone when the kernel looks at it: then nobody waits there, or somebody who
/// looks again.
inline void bell::ring() noexcept
{
    rung_.store(1, std::memory_order_release);
    ::syscall(SYS_futex, &rung_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

/// std::chrono::steady_clock is CLOCK_MONOTONIC here, which FUTEX_WAIT_BITSET measures by.
inline bool bell::wait(time_point until) noexcept
{
    const auto     since = until.time_since_epoch();
    const auto     whole = std::chrono::floor<std::chrono::seconds>(since);
    const timespec limit{.tv_sec  = static_cast<std::time_t>(whole.count()),
                         .tv_nsec = static_cast<long>((since - whole).count())};
    while (rung_.load(std::memory_order_acquire) == 0) {
        if (std::chrono::steady_clock::now() >= until) return false;
        ::syscall(SYS_futex, &rung_, FUTEX_WAIT_BITSET_PRIVATE, 0, &limit, nullptr,
                  FUTEX_BITSET_MATCH_ANY);
    }
    return true;
}

inline void bell::reset() noexcept { rung_.store(0, std::memory_order_relaxed); }

#else

inline void bell::ring() noexcept
{
    const std::lock_guard held(mutex_);  // so that nobody destroys it before notify_one returned
    rung_ = true;
    changed_.notify_one();
}

inline bool bell::wait(time_point until) noexcept
{
    std::unique_lock held(mutex_);
    return changed_.wait_until(held, until, [&] { return rung_; });
}

inline void bell::reset() noexcept
{
    const std::lock_guard held(mutex_);
    rung_ = false;
}

#endif

}  // namespace weir::remote
