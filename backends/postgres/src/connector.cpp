// SPDX-License-Identifier: BSL-1.0

#include "weir/postgres/connector.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

namespace weir::postgres {

connector::connector(const place& where, std::vector<remote::line*> lines, duration patience)
    : place_(&where), lines_(std::move(lines)), patience_(patience)
{
}

connector::~connector() { stop(); }

void connector::stop() noexcept
{
    {
        const std::lock_guard held(mutex_);
        stopping_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) thread_.join();
}

void connector::lost() noexcept
{
    const std::lock_guard held(mutex_);
    wake_.notify_one();
    if (stopping_ || thread_.joinable()) return;
    try {
        thread_ = std::thread([this] { work(); });
    } catch (const std::exception&) {  // no thread to be had: the next loss tries again
    }
}

remote::line* connector::next_without() noexcept
{
    const auto found =
        std::ranges::find_if(lines_, [](const auto* one) { return !one->connected(); });
    return found == lines_.end() ? nullptr : *found;
}

void connector::work() noexcept
{
    for (std::unique_lock held(mutex_); !stopping_;) {
        auto* const one = next_without();
        if (one == nullptr) {
            wake_.wait(held);
            continue;
        }
        held.unlock();
        const bool ends = pause(next_pause()) || (!mend(*one) && pause(after_failure()));
        held.lock();
        if (ends) return;
    }
}

bool connector::mend(remote::line& one) noexcept
{
    try {
        one.mend(std::make_unique<connection>(*place_, clock::now() + patience_));
        return true;
    } catch (const std::exception&) {  // told already, when the line went away
        return false;
    }
}

/// Until the attempt that many before this one is a second ago.
connector::clock::duration connector::next_pause() noexcept
{
    auto&      begun = begun_[attempts_++ % begun_.size()];
    const auto now   = clock::now();
    const auto free  = std::max(begun + std::chrono::seconds(1), now);
    begun            = free;
    return free - now;
}

connector::clock::duration connector::after_failure() noexcept
{
    return shortest_pause +
           std::chrono::milliseconds(random_() % (longest_pause - shortest_pause).count());
}

/// True if it is time to end.
bool connector::pause(clock::duration length) noexcept
{
    std::unique_lock held(mutex_);
    return wake_.wait_for(held, length, [&] { return stopping_; });
}

}  // namespace weir::postgres
