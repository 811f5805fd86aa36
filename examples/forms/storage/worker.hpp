// SPDX-License-Identifier: BSL-1.0
#pragma once

// A thread with a connection of its own. What waits is done together, in one transaction: a commit
// costs a write to the disk, and so many share it that each pays little.

#include "storage/sqlite.hpp"

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace forms {

/// Thread-safe. Work runs on the worker's thread, in the order in which it was added.
class worker {
public:
    using work = std::function<void(connection&)>;
    using done = std::function<void(bool kept)>;

    enum class kind {
        writing,  ///< All that waits is one transaction, and `done` follows its commit.
        reading,  ///< Each by itself, so that what it reads is of one moment.
    };

    /// Throws storage_error if the file cannot be opened.
    worker(const std::string& path, kind what);
    ~worker() { finish(); }

    /// `then(false)` says that nothing was kept: the disk failed, or the file was locked for too
    /// long. False, and neither is called, when `most_waiting` wait or after `finish`.
    bool add(work what, done then);

    /// Does what waits, then ends the thread.
    void finish();

private:
    static constexpr std::size_t most_waiting = 16'384;
    static constexpr std::size_t most_at_once = 512;  // bounds how long the first has to wait

    struct job {
        work what;
        done then;
    };

    void             run();
    std::vector<job> take();
    void             write(std::vector<job>& batch);
    void             read(std::vector<job>& batch);

    connection              on_;
    kind                    kind_;
    std::mutex              mutex_;
    std::condition_variable more_;
    std::vector<job>        waiting_;
    bool                    over_ = false;
    std::thread             thread_;
};

}  // namespace forms
