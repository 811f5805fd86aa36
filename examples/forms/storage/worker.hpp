// SPDX-License-Identifier: BSL-1.0
#pragma once

// Threads with a connection of their own, so that nobody who serves others waits for a database.

#include "storage/health.hpp"
#include "storage/queue.hpp"
#include "storage/records.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace forms {

/// `done(false)`: it is not known to be kept, or was not read. Called on the thread of the worker.
using done = std::function<void(bool)>;

/// Keeps submissions. What waits is written together, in one transaction: a commit costs a write to
/// a disk, and so many share it that each pays little. Thread-safe.
class writer {
public:
    /// Throws storage_error if the database cannot be opened.
    writer(storage& on, health& state);
    ~writer() { finish(); }

    /// False, and `then` is not called, when too many wait or after `finish`. What is borrowed must
    /// stay until then.
    bool keep(keeping& one, done then);
    bool mark_delivered(const std::vector<submission>& those, done then);

    /// Looks again, if the database failed the last time.
    void probe();

    /// Does what waits, then ends the thread.
    void finish();

private:
    static constexpr std::size_t most_at_once = 512;  // bounds how long the first has to wait

    struct job {
        keeping*                       kept      = nullptr;
        const std::vector<submission>* delivered = nullptr;
        done                           then      = {};

        [[nodiscard]] std::size_t bytes() const noexcept
        {
            return kept == nullptr ? 0 : kept->given.fields.size();
        }
    };

    void run();
    bool write(const std::vector<job>& jobs);
    void write_apart(std::vector<job>& jobs);

    std::unique_ptr<records>  on_;
    health::part              state_;
    std::chrono::milliseconds patience_;
    queue<job>                waiting_;
    std::thread               thread_;
};

/// Does everything else: each by itself, in the order in which it came. Thread-safe.
class worker {
public:
    using work = std::function<void(records&)>;

    worker(storage& on, health& state);  ///< As that of a writer.
    ~worker() { finish(); }

    bool add(work what, done then);
    void finish();

private:
    struct job {
        work what;
        done then;

        [[nodiscard]] static std::size_t bytes() noexcept { return 0; }
    };

    void run();
    bool does(const job& one);

    std::unique_ptr<records>  on_;
    health::part              state_;
    std::chrono::milliseconds patience_;
    queue<job>                waiting_;
    std::thread               thread_;
};

}  // namespace forms
