// SPDX-License-Identifier: BSL-1.0
#pragma once

// From the queue in the database to the outbox: one line of JSON for each submission.

#include "storage/records.hpp"
#include "storage/worker.hpp"

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace forms {

/// A thread of its own. A line is on the disk before its submission leaves the queue: it is written
/// once, and after a crash between the two once more, with the same submission_id. Processes on one
/// database take turns, by a lock beside it.
class delivery {
public:
    /// Throws storage_error if one of the two files cannot be opened.
    delivery(const std::string& database, std::string outbox, worker& writer);
    ~delivery() { finish(); }

    /// Something was queued. Thread-safe, and cheap while a round is under way.
    void wake();

    /// Delivers what is queued, then ends the thread. The writer must still be there.
    void finish();

private:
    void run();
    bool wait();
    bool deliver_some();
    bool mark(const std::vector<submission>& done);

    connection              on_;
    std::string             outbox_;
    std::string             lock_path_;
    worker&                 writer_;
    std::mutex              mutex_;
    std::condition_variable more_;
    bool                    woken_ = true;  // what an earlier process left behind
    bool                    over_  = false;
    std::thread             thread_;
};

}  // namespace forms
