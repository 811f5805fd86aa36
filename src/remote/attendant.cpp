// SPDX-License-Identifier: BSL-1.0

#include "weir/remote/attendant.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "weir/remote/ready.hpp"

namespace weir::remote {
namespace {

thread_local const attendant* serving_here = nullptr;

}  // namespace

attendant::attendant(std::vector<line*> lines) : lines_(std::move(lines))
{
    if (::pipe2(bell_, O_CLOEXEC | O_NONBLOCK) != 0)
        throw std::system_error(errno, std::generic_category(), "weir: a pipe for callbacks");
    try {
        thread_ = std::thread([this] { work(); });
    } catch (...) {
        for (const int end : bell_) ::close(end);
        throw;
    }
    // Only now: lines that nobody serves would leave their callers to the deadline.
    for (auto* const one : lines_) one->be_served();
    begun_ = true;
    begun_.notify_one();
}

attendant::~attendant()
{
    stopping_ = true;
    asleep_   = true;
    poke();
    thread_.join();
    for (const int end : bell_) ::close(end);
}

void attendant::poke() noexcept
{
    if (serving_here == this) again_ = true;  // a callback asked, maybe of a line served already
    else if (asleep_.exchange(false)) ring();
}

void attendant::ring() noexcept
{
    const char                  byte    = 0;
    [[maybe_unused]] const auto written = ::write(bell_[1], &byte, 1);  // full is rung as well
}

/// Whoever comes while the lines are served, or later, finds `asleep_` set and rings.
void attendant::work() noexcept
{
    serving_here = this;
    begun_.wait(false);
    std::vector<line::attention> until(lines_.size());
    while (!stopping_) {
        asleep_ = true;
        do {
            again_ = false;
            std::ranges::transform(lines_, until.begin(), [](line* one) { return one->serve(); });
        } while (again_);
        sleep(until);
        asleep_ = false;
    }
}

void attendant::sleep(std::span<const line::attention> until) noexcept
{
    std::vector<pollfd> ready{{.fd = bell_[0], .events = POLLIN, .revents = 0}};
    auto                first = line::time_point::max();
    for (const auto& one : until) {
        first             = std::min(first, one.until);
        const auto events = static_cast<short>(POLLIN | (one.writes ? POLLOUT : 0));
        if (one.descriptor >= 0)
            ready.push_back({.fd = one.descriptor, .events = events, .revents = 0});
    }
    wait_for(ready, first);
    if (ready.front().revents != 0) drain();
}

void attendant::drain() noexcept
{
    std::array<char, 64> bytes;
    while (::read(bell_[0], bytes.data(), bytes.size()) > 0) {}
}

}  // namespace weir::remote
