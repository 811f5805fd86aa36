// SPDX-License-Identifier: BSL-1.0
#pragma once

// From the queue in the database to the outbox: one line of JSON for each submission.

#include "storage/health.hpp"
#include "storage/records.hpp"
#include "storage/worker.hpp"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace forms {

/// A thread of its own. A line is on the disk before its submission leaves the queue: it is written
/// once, and after a crash between the two once more, with the same submission_id. Processes on one
/// database take turns, or each claims what it will deliver.
class delivery {
public:
    /// Throws storage_error if the database or the outbox cannot be opened.
    delivery(storage& from, std::string outbox, writer& keeper);
    ~delivery() { finish(); }

    /// Something was queued. Thread-safe, and cheap while a round is under way.
    void wake();

    /// Delivers what is queued, then ends the thread. The writer must still be there.
    void finish();

private:
    void run();
    bool wait();
    bool deliver_some();
    bool report();
    bool mark();

    storage&                 from_;
    std::unique_ptr<records> on_;
    std::string              outbox_;
    writer&                  keeper_;
    health                   state_{"delivery"};  // what is accepted does not depend on it
    health::part             mine_{state_};
    std::vector<submission>  delivered_;  // and not known to have left the queue
    std::mutex              mutex_;
    std::condition_variable more_;
    bool                    woken_ = true;  // what an earlier process left behind
    bool                    over_  = false;
    std::thread             thread_;
};

}  // namespace forms
