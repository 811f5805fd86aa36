// SPDX-License-Identifier: BSL-1.0
#pragma once

// The thread that serves the lines of a store once somebody left a callback there. A store whose
// callers all wait has none.

#include <atomic>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "weir/remote/line.hpp"

namespace weir::remote {

/// Thread-safe. Callbacks run on its thread: a slow one delays all others.
class attendant {
public:
    /// Throws std::system_error if the system has no thread or descriptor for it.
    explicit attendant(std::vector<line*> lines);
    ~attendant();
    attendant(const attendant&)            = delete;
    attendant& operator=(const attendant&) = delete;

    /// Some line has work. O(1); a system call only while the thread sleeps.
    void poke() noexcept;

private:
    void work() noexcept;
    void ring() noexcept;
    void sleep(std::span<const line::attention> until) noexcept;
    void drain() noexcept;

    std::vector<line*> lines_;
    int                bell_[2]  = {-1, -1};  // a pipe: it can be waited on beside connections
    bool               again_    = false;     // of the thread alone
    std::atomic<bool>  asleep_   = false;
    std::atomic<bool>  stopping_ = false;
    std::atomic<bool>  begun_    = false;  // callers leave the lines to the thread
    std::thread        thread_;
};

}  // namespace weir::remote
