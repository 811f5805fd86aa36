// SPDX-License-Identifier: BSL-1.0

#include "storage/worker.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iterator>
#include <utility>

namespace forms {

worker::worker(const std::string& path, kind what)
    : on_(path), kind_(what), thread_([this] { run(); })
{
}

bool worker::add(work what, done then)
{
    {
        const std::lock_guard lock(mutex_);
        if (over_ || waiting_.size() >= most_waiting) return false;
        waiting_.push_back({std::move(what), std::move(then)});
    }
    more_.notify_one();
    return true;
}

void worker::finish()
{
    {
        const std::lock_guard lock(mutex_);
        over_ = true;
    }
    more_.notify_one();
    if (thread_.joinable()) thread_.join();
}

void worker::run()
{
    for (auto batch = take(); !batch.empty(); batch = take())
        kind_ == kind::writing ? write(batch) : read(batch);
}

/// What waits, the oldest first; nothing once it is over and all is done.
std::vector<worker::job> worker::take()
{
    std::unique_lock lock(mutex_);
    more_.wait(lock, [this] { return over_ || !waiting_.empty(); });
    if (waiting_.size() <= most_at_once) return std::exchange(waiting_, {});

    const auto       end = waiting_.begin() + most_at_once;
    std::vector<job> batch(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(end));
    waiting_.erase(waiting_.begin(), end);
    return batch;
}

void worker::write(std::vector<job>& batch)
{
    bool kept = false;
    try {
        on_.execute("BEGIN IMMEDIATE");
        for (auto& each : batch) each.what(on_);
        on_.execute("COMMIT");
        kept = true;
    } catch (const std::exception& failed) {
        std::fprintf(stderr, "weir-forms: nothing was stored: %s\n", failed.what());
        // Fails where the transaction was never begun or is undone already, which is all we want.
        try { on_.execute("ROLLBACK"); } catch (const storage_error&) {}
    }
    for (auto& each : batch) each.then(kept);
}

void worker::read(std::vector<job>& batch)
{
    for (auto& each : batch) {
        bool read = false;
        try {
            each.what(on_);
            read = true;
        } catch (const std::exception& failed) {
            std::fprintf(stderr, "weir-forms: cannot read: %s\n", failed.what());
        }
        each.then(read);
    }
}

}  // namespace forms
