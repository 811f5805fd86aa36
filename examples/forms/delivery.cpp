// SPDX-License-Identifier: BSL-1.0

#include "delivery.hpp"

#include "file.hpp"
#include "submission_json.hpp"

#include <chrono>
#include <cstdint>
#include <exception>
#include <future>
#include <utility>

#include <fcntl.h>

namespace forms {

namespace {

constexpr std::int64_t most_at_once = 256;

/// Opened for each round, so that the outbox may be moved away at any time.
constexpr int outbox_flags = O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC;

}  // namespace

delivery::delivery(storage& from, std::string outbox, writer& keeper)
    : from_(from), on_(from.open()), outbox_(std::move(outbox)), keeper_(keeper)
{
    file(outbox_, outbox_flags);
    thread_ = std::thread([this] { run(); });
}

void delivery::wake()
{
    {
        const std::lock_guard lock(mutex_);
        if (woken_) return;
        woken_ = true;
    }
    more_.notify_one();
}

void delivery::finish()
{
    {
        const std::lock_guard lock(mutex_);
        over_ = true;
    }
    more_.notify_one();
    if (thread_.joinable()) thread_.join();
}

/// Looks once a second unasked: another process may have ended before its deliveries.
bool delivery::wait()
{
    std::unique_lock lock(mutex_);
    more_.wait_for(lock, std::chrono::seconds(1), [this] { return woken_ || over_; });
    woken_ = false;
    return !over_;
}

void delivery::run()
{
    bool goes_on = true;
    while (goes_on) {
        goes_on = wait();
        try {
            while (deliver_some()) {}
            mine_.works();
        } catch (const std::exception& failed) {
            mine_.fails(failed.what());
        }
    }
}

/// False when there is nothing more to do for now.
bool delivery::deliver_some()
{
    const auto turn = from_.delivery_turn();
    if (!report()) return false;

    const auto since = records::time_point::clock::now();
    on_->allow_until(since + from_.patience());
    auto queued = on_->claim(most_at_once);
    if (queued.empty()) return false;

    std::string lines;
    for (const auto& each : queued) {
        append_submission(lines, each);
        lines += '\n';
    }
    file outbox(outbox_, outbox_flags);
    // This process stood still: by now the claim may be another's.
    if (records::time_point::clock::now() > since + storage::claim_lasts / 2) return true;
    outbox.end_line();
    outbox.write(lines);
    outbox.sync();
    delivered_ = std::move(queued);
    return report();
}

/// While the database is away what was delivered is kept in mind, so that it comes once all the
/// same. False if that is so.
bool delivery::report()
{
    if (!delivered_.empty() && mark()) delivered_.clear();
    return delivered_.empty();
}

/// By the writer, in the same commit as the submissions that wait there.
bool delivery::mark()
{
    std::promise<bool> marked;
    const auto tell = [&](bool kept) { marked.set_value(kept); };
    return keeper_.mark_delivered(delivered_, tell) && marked.get_future().get();
}

}  // namespace forms
