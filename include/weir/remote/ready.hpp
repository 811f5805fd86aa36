// SPDX-License-Identifier: BSL-1.0
#pragma once

// Waits for connections until a time, to the nanosecond: poll(2) would round a deadline up to whole
// milliseconds.

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <span>

namespace weir::remote {

/// Until one of them is ready, `until` has come, or a signal has: whoever called looks again.
inline void wait_for(std::span<pollfd> some, std::chrono::steady_clock::time_point until) noexcept
{
    using std::chrono::steady_clock;
    constexpr std::int64_t longest = 3'600;  // of one wait; so that no time is too far away
    const auto left  = std::max(until - steady_clock::now(), steady_clock::duration::zero());
    const auto whole = std::chrono::floor<std::chrono::seconds>(left);
    timespec   limit{};
    limit.tv_sec  = static_cast<std::time_t>(std::min<std::int64_t>(whole.count(), longest));
    limit.tv_nsec = static_cast<long>((left - whole).count());
    ::ppoll(some.data(), some.size(), &limit, nullptr);
}

}  // namespace weir::remote
