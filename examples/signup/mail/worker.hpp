// SPDX-License-Identifier: BSL-1.0
#pragma once

// Sends what is due. Any number of these, in any number of processes: each takes some mails for as
// long as its lease. One that is killed loses none: they are free again when the lease ends.

#include "mail/links.hpp"
#include "mail/transport.hpp"
#include "settings.hpp"
#include "storage/records.hpp"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace signup {

/// A thread with a connection of its own.
class worker {
public:
    /// Throws std::runtime_error if mails cannot be sent at all.
    worker(storage& on, const settings& chosen, const links& with);
    ~worker() { finish(); }

    /// There may be something to send at once. Thread-safe.
    void wake();

    /// Ends when the mail under way is through.
    void finish();

private:
    void run();
    bool wait();
    void look();
    bool send_some();
    void send(const mail& one);
    void settle(const mail& one, const passage& became);
    void report();
    void tell(const std::string& trouble);

    storage&                   on_;
    const settings&            chosen_;
    const links&               with_;
    std::unique_ptr<transport> out_;
    std::unique_ptr<records>   kept_;
    std::vector<mail>          sent_;  // and not reported yet
    std::string                trouble_;

    std::mutex              mutex_;
    std::condition_variable more_;
    bool                    woken_ = true;
    std::atomic<bool>       over_  = false;
    std::thread             thread_;
};

}  // namespace signup
