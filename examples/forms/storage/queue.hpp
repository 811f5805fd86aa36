// SPDX-License-Identifier: BSL-1.0
#pragma once

// What waits for a thread on the database.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

namespace forms {

/// Thread-safe. A `Job` has a `then(bool)`, which is called once, and says in `bytes()` how much it
/// adds to a round.
template <class Job>
class queue {
public:
    using clock = std::chrono::steady_clock;

    /// Whoever waits longer is told false.
    explicit queue(std::chrono::milliseconds patience) : patience_(patience) {}

    /// False, and nothing is called, when so many wait that there is no room, or after `close`.
    bool add(Job one)
    {
        {
            const std::lock_guard lock(mutex_);
            if (over_ || waiting_.size() >= most_waiting) return false;
            waiting_.push_back({std::move(one), clock::now()});
        }
        more_.notify_one();
        return true;
    }

    /// What waits, the oldest first, up to `most`; nothing once it is closed and all is done.
    std::vector<Job> take(std::size_t most)
    {
        std::vector<Job> taken;
        for (bool goes_on = true; goes_on && taken.empty();) {
            std::vector<Job> overdue;
            goes_on = fill(taken, overdue, most);
            for (auto& each : overdue) each.then(false);
        }
        return taken;
    }

    void close()
    {
        {
            const std::lock_guard lock(mutex_);
            over_ = true;
        }
        more_.notify_one();
    }

private:
    static constexpr std::size_t most_waiting = 16'384;
    static constexpr std::size_t most_bytes   = std::size_t{8} << 20;  // of a round

    struct place {
        Job               job;
        clock::time_point since;
    };

    bool fill(std::vector<Job>& taken, std::vector<Job>& overdue, std::size_t most)
    {
        std::unique_lock lock(mutex_);
        more_.wait(lock, [this] { return over_ || !waiting_.empty(); });
        const auto oldest = clock::now() - patience_;
        for (std::size_t bytes = 0;
             !waiting_.empty() && taken.size() < most && bytes < most_bytes;) {
            auto& next = waiting_.front();
            if (next.since < oldest) overdue.push_back(std::move(next.job));
            else bytes += next.job.bytes(), taken.push_back(std::move(next.job));
            waiting_.pop_front();
        }
        return !taken.empty() || !overdue.empty() || !over_;
    }

    std::chrono::milliseconds patience_;
    std::mutex                mutex_;
    std::condition_variable   more_;
    std::deque<place>         waiting_;
    bool                      over_ = false;
};

}  // namespace forms
