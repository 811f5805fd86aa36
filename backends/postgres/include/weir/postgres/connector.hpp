// SPDX-License-Identifier: BSL-1.0
#pragma once

// Who finds a line another connection when it lost its own: a thread, so that no caller ever waits
// for a name to be looked up or a server to say hello. There is none until the first loss.

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "weir/postgres/connection.hpp"
#include "weir/remote/line.hpp"

namespace weir::postgres {

/// Thread-safe.
class connector {
public:
    using clock = std::chrono::steady_clock;

    /// In any second this process begins so many attempts, whatever the number of lines: those of
    /// lines that were lost together follow each other at once, or the last would be an outage.
    static constexpr std::size_t most_in_a_second = 8;

    /// After a failure, at random, so that the processes of a site do not come all at once.
    static constexpr std::chrono::milliseconds shortest_pause{100};
    static constexpr std::chrono::milliseconds longest_pause{500};

    /// `patience` is how long one attempt may take.
    connector(const place& where, std::vector<remote::line*> lines, duration patience);
    ~connector();
    connector(const connector&)            = delete;
    connector& operator=(const connector&) = delete;

    /// Some line has no connection.
    void lost() noexcept;

    /// Ends the thread, at the latest when the attempt that is under way has ended.
    void stop() noexcept;

private:
    void          work() noexcept;
    remote::line* next_without() noexcept;
    bool          mend(remote::line& one) noexcept;
    bool          pause(clock::duration length) noexcept;

    clock::duration next_pause() noexcept;
    clock::duration after_failure() noexcept;

    const place*               place_;
    std::vector<remote::line*> lines_;
    duration                   patience_;
    std::minstd_rand           random_{std::random_device{}()};

    std::array<clock::time_point, most_in_a_second> begun_    = {};
    std::size_t                                     attempts_ = 0;

    std::mutex              mutex_;
    std::condition_variable wake_;
    bool                    stopping_ = false;
    std::thread             thread_;
};

}  // namespace weir::postgres
