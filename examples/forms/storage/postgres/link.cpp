// SPDX-License-Identifier: BSL-1.0

#include "storage/postgres/link.hpp"

#include <exception>
#include <random>
#include <utility>

namespace forms::postgres {

namespace {

using namespace std::chrono_literals;

constexpr auto patience = 5s;  // for an attempt to connect

/// Between two attempts: not all processes at one moment.
std::chrono::milliseconds pause()
{
    return 100ms + std::chrono::milliseconds(std::random_device{}() % 100);
}

}  // namespace

link::link(std::string conninfo)
    : conninfo_(std::move(conninfo)),
      session_(std::make_unique<session>(conninfo_, session::clock::now() + patience))
{
}

link::~link()
{
    {
        const std::lock_guard lock(mutex_);
        over_ = true;
    }
    changed_.notify_all();
    if (mender_.joinable()) mender_.join();
}

rows link::run(const char* sql, const std::vector<std::string>& values, time_point until)
{
    try {
        return ready(until).run(sql, values, until);
    } catch (const lost&) {
        lose();
        throw;
    }
}

session& link::ready(time_point until)
{
    if (session_ && session_->usable()) return *session_;
    lose();
    std::unique_lock lock(mutex_);
    const bool told = changed_.wait_until(lock, until, [this] { return fresh_ || !why_.empty(); });
    if (!fresh_) throw storage_error(told ? why_ : "the server does not answer in time");
    session_ = std::move(fresh_);
    lock.unlock();
    mender_.join();
    return *session_;
}

void link::lose()
{
    session_.reset();
    if (mender_.joinable()) return;
    why_.clear();
    mender_ = std::thread([this] { mend(); });
}

void link::mend() noexcept
{
    std::unique_lock held(mutex_);
    while (!over_ && !tries(held)) changed_.wait_for(held, pause(), [this] { return over_; });
}

bool link::tries(std::unique_lock<std::mutex>& held) noexcept
{
    std::unique_ptr<session> made;
    std::string              why;
    held.unlock();
    try {
        made = std::make_unique<session>(conninfo_, session::clock::now() + patience);
    } catch (const std::exception& failed) {
        why = failed.what();
    }
    held.lock();
    fresh_ = std::move(made);
    why_   = std::move(why);
    changed_.notify_all();
    return fresh_ != nullptr;
}

}  // namespace forms::postgres
