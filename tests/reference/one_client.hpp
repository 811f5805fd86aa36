// SPDX-License-Identifier: BSL-1.0
#pragma once

// The stage of most case tables: one client of one limit, at instants in milliseconds of 2026.

#include <chrono>
#include <cstdint>
#include <vector>

#include "weir/limiter.hpp"
#include "weir/store/memory.hpp"
#include "weir/time.hpp"

namespace reference {

/// Milliseconds from 2026-01-01T00:00:00Z, an edge of all windows that divide a day.
constexpr weir::instant t(std::int64_t milliseconds)
{
    return std::chrono::sys_days(std::chrono::year(2026) / 1 / 1) +
           std::chrono::milliseconds(milliseconds);
}

template <class Policy>
class one_client {
public:
    explicit one_client(const Policy& limit) : limiter("case", limit, counters_) {}

    weir::decision admit(std::int64_t milliseconds, std::uint64_t cost = 1)
    {
        return limiter.admit("client", {cost}, t(milliseconds));
    }

    /// How many of `asks` are admitted at that instant.
    int admitted(int asks, std::int64_t milliseconds)
    {
        int count = 0;
        for (int i = 0; i < asks; ++i) count += bool(admit(milliseconds));
        return count;
    }

private:
    weir::memory_store counters_;

public:
    weir::limiter<Policy, weir::memory_store> limiter;
};

/// The most units admitted in any half-open span of this length. The instants are in order.
inline std::uint64_t most_in_any_span(const std::vector<weir::instant>& admitted,
                                      weir::duration                    span)
{
    std::uint64_t most  = 0;
    std::size_t   first = 0;
    for (std::size_t last = 0; last < admitted.size(); ++last) {
        while (admitted[last] - admitted[first] >= span) ++first;
        most = std::max<std::uint64_t>(most, last - first + 1);
    }
    return most;
}

}  // namespace reference
