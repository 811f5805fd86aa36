// SPDX-License-Identifier: BSL-1.0

#include "link.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>

namespace proxy {

namespace {

/// Takes `count` bytes off the front.
void advance(std::array<asio::const_buffer, 2>& left, std::size_t count) noexcept
{
    const auto first = std::min(count, left[0].size());
    left[0] += first;
    left[1] += count - first;
}

}  // namespace

link::link(asio::io_context& on, std::shared_ptr<origin> to)
    : socket_(on), to_(std::move(to)), buffer_(new char[room])
{
    to_->connections.fetch_add(1, std::memory_order_relaxed);
}

link::~link() { to_->connections.fetch_sub(1, std::memory_order_relaxed); }

void link::serve(std::shared_ptr<link_user> user) noexcept
{
    user_   = std::move(user);
    silent_ = true;
    pool_   = nullptr;
}

void link::connect()
{
    error_code failed;
    socket_.open(to_->at.protocol(), failed);
    if (!failed) socket_.non_blocking(true, failed);
    if (!failed) socket_.set_option(tcp::no_delay(true), failed);
    socket_.async_connect(to_->at, [self = shared_from_this()](const error_code& why) {
        if (self->closed_) return;
        const auto user = self->user_;
        user->connected(why);
    });
}

sending link::send(const std::array<asio::const_buffer, 2>& what)
{
    left_ = what;
    error_code failed;
    const auto count = socket_.write_some(left_, failed);
    if (failed && failed != asio::error::would_block) return sending::failed;
    advance(left_, count);
    if (asio::buffer_size(left_) == 0) return sending::done;
    sending_ = true;
    send_rest();
    return sending::later;
}

void link::send_rest()
{
    socket_.async_write_some(
        left_, [self = shared_from_this()](const error_code& failed, std::size_t count) {
            if (self->closed_) return;
            advance(self->left_, count);
            if (!failed && asio::buffer_size(self->left_) > 0) return self->send_rest();
            self->sending_  = false;
            const auto user = self->user_;
            if (user) user->sent(failed);
        });
}

void link::receive()
{
    if (reading_ || closed_) return;
    if (begin_ == end_) begin_ = end_ = 0;
    if (end_ == room) {
        std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
        end_ -= std::exchange(begin_, 0);
    }
    reading_ = true;
    socket_.async_read_some(
        asio::buffer(buffer_.get() + end_, room - end_),
        [self = shared_from_this()](const error_code& failed, std::size_t count) {
            self->reading_ = false;
            if (!self->closed_) self->read_some(count, failed);
        });
}

void link::read_some(std::size_t count, const error_code& failed)
{
    end_ += count;
    if (!user_) {  // it is idle: an end, or bytes that answer nothing
        if (pool_ != nullptr) pool_->drop(*this);
        return close();
    }
    silent_         = silent_ && count == 0;
    const auto user = user_;
    user->received(failed);
}

void link::consume(std::size_t count) noexcept { begin_ += count; }

void link::close() noexcept
{
    closed_ = true;
    user_.reset();
    error_code ignored;
    socket_.close(ignored);
}

std::shared_ptr<link> link_pool::take(const origin& to)
{
    if (to.id >= idle_.size() || idle_[to.id].empty()) return nullptr;
    auto found = std::move(idle_[to.id].back());
    idle_[to.id].pop_back();
    found->reused_ = true;
    return found;
}

void link_pool::keep(std::shared_ptr<link> one, std::size_t most,
                     std::chrono::steady_clock::time_point now)
{
    const auto id = one->to()->id;
    if (id >= idle_.size()) idle_.resize(id + 1);
    if (idle_[id].size() >= most || !one->bytes().empty() || one->closed_) return one->close();
    one->user_.reset();
    one->pool_       = this;
    one->idle_since_ = now;
    one->receive();
    idle_[id].push_back(std::move(one));
}

void link_pool::drop(const link& one) noexcept
{
    std::erase_if(idle_[one.to()->id], [&](const auto& each) { return each.get() == &one; });
}

void link_pool::drop_older_than(std::chrono::steady_clock::time_point then) noexcept
{
    for (auto& of_one : idle_)
        std::erase_if(of_one, [&](const auto& each) {
            if (each->idle_since_ > then) return false;
            each->close();
            return true;
        });
}

void link_pool::clear() noexcept { drop_older_than(std::chrono::steady_clock::time_point::max()); }

}  // namespace proxy
