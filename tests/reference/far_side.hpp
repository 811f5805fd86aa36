// SPDX-License-Identifier: BSL-1.0
#pragma once

// The other end of a line: a small server on a thread of its own, behind real sockets, that counts
// and answers when and how a test wants it to.

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "weir/remote/line.hpp"
#include "weir/remote/trip.hpp"
#include "weir/remote/wire.hpp"

namespace reference {

/// Thread-safe. It must outlive the wires that it made.
class far_side {
public:
    enum class word : char {
        answer = 'a',
        again  = 'g',
        lock   = 'l',
        refuse = 'r',
        undo   = 'u',  ///< Has not run it, and is going down.
        hang   = 'h',  ///< Says nothing, ever.
        leave  = 'x',  ///< Closes the connection.
    };

    struct seen {
        weir::remote::trip::kind carries = {};
        std::size_t              rows    = 0;
        std::int64_t             callers = 0;
    };

    far_side()
    {
        if (pipe2(bell_, O_CLOEXEC) != 0) std::abort();
        thread_ = std::thread([this] { work(); });
    }
    ~far_side()
    {
        {
            const std::lock_guard turn(mutex_);
            stopping_ = true, held_ = false;
        }
        changed_.notify_all();
        ring();
        thread_.join();
        for (const int end : {bell_[0], bell_[1]}) close(end);
    }
    far_side(const far_side&)            = delete;
    far_side& operator=(const far_side&) = delete;

    std::unique_ptr<weir::remote::wire> connect();

    /// The next words, one for each trip; after them it answers.
    void say(std::deque<word> words)
    {
        const std::lock_guard turn(mutex_);
        words_ = std::move(words);
    }
    /// From now on, or never again, the server keeps its words to itself.
    void hold(bool holds = true)
    {
        const std::lock_guard turn(mutex_);
        held_ = holds;
        changed_.notify_all();
    }

    /// Closes all connections; blocks until it is done.
    void hang_up()
    {
        std::unique_lock turn(mutex_);
        leaving_ = true;
        ring();
        changed_.wait(turn, [&] { return !leaving_; });
    }

    /// Blocks until so many trips have come in all.
    void await(std::size_t trips)
    {
        std::unique_lock turn(mutex_);
        changed_.wait(turn, [&] { return heard_ >= trips; });
    }

    std::vector<seen> trips() const
    {
        const std::lock_guard turn(mutex_);
        return trips_;
    }
    /// Units counted on a key: never more than were sent.
    std::int64_t counted(const weir::key& who) const
    {
        const std::lock_guard turn(mutex_);
        const auto            found = counts_.find(who);
        return found == counts_.end() ? 0 : found->second;
    }
    /// Wires there are.
    [[nodiscard]] int wires() const { return wires_; }

private:
    class near_end;

    void ring()
    {
        const char byte = 0;
        if (write(bell_[1], &byte, 1) != 1) std::abort();
    }

    void work()
    {
        std::vector<int> ends;
        for (;;) {
            std::vector<pollfd> ready{{.fd = bell_[0], .events = POLLIN, .revents = 0}};
            for (const int end : ends) ready.push_back({.fd = end, .events = POLLIN, .revents = 0});
            ::poll(ready.data(), ready.size(), -1);
            char byte = 0;
            if (ready[0].revents != 0 && read(bell_[0], &byte, 1) == 1) {
                const std::lock_guard turn(mutex_);
                ends.insert(ends.end(), fresh_.begin(), fresh_.end());
                fresh_.clear();
                if (stopping_) break;
                if (leaving_) {
                    for (const int end : ends) close(end);
                    ends.clear(), leaving_ = false;
                    changed_.notify_all();
                    continue;
                }
            }
            for (std::size_t n = 1; n < ready.size(); ++n)
                if (ready[n].revents != 0 && !serve(ready[n].fd)) std::erase(ends, ready[n].fd);
        }
        for (const int end : ends) close(end);
    }

    /// False if the end is closed.
    bool serve(int end)
    {
        char byte = 0;
        if (read(end, &byte, 1) != 1) return close(end), false;
        const auto what = next_word();
        if (what == word::leave) return close(end), false;
        if (what == word::hang) return true;
        const auto said = static_cast<char>(what);
        return ::send(end, &said, 1, MSG_NOSIGNAL) == 1 || (close(end), false);
    }

    word next_word()
    {
        std::unique_lock turn(mutex_);
        ++heard_;
        changed_.notify_all();
        changed_.wait(turn, [&] { return !held_; });
        if (words_.empty()) return word::answer;
        const auto next = words_.front();
        words_.pop_front();
        return next;
    }

    void note(const weir::remote::trip& asked)
    {
        seen one{.carries = asked.carries, .rows = asked.parts().size()};
        for (const auto& part : asked.parts()) one.callers += part.asked.times;
        const std::lock_guard turn(mutex_);
        trips_.push_back(one);
    }

    /// Counts as a limiter whose window never ends.
    void answer(weir::remote::trip& asked)
    {
        const std::lock_guard turn(mutex_);
        for (auto& part : asked.parts()) {
            const auto& row  = part.asked;
            auto&       used = counts_[row.who];
            part.said        = {.found = true, .callers = row.times};
            part.said.granted =
                std::min(row.times, std::max<std::int64_t>(row.most - used, 0) / row.cost);
            used += part.said.granted * row.cost;
            part.said.after = {used, 0, 0};
        }
    }

    mutable std::mutex                mutex_;
    std::condition_variable           changed_;
    std::deque<word>                  words_;
    std::vector<seen>                 trips_;
    std::map<weir::key, std::int64_t> counts_;
    std::vector<int>                  fresh_;
    std::size_t                       heard_    = 0;
    bool                              held_     = false;
    bool                              leaving_  = false;
    bool                              stopping_ = false;
    std::atomic<int>                  wires_    = 0;
    int                               bell_[2]  = {-1, -1};
    std::thread                       thread_;
};

/// Each second trip of it leaves late: only when the line has waited for room to write.
class far_side::near_end final : public weir::remote::wire {
public:
    near_end(far_side& far, int descriptor) : far_(&far), descriptor_(descriptor) { ++far.wires_; }
    ~near_end() override
    {
        close(descriptor_);
        --far_->wires_;
    }

    bool usable() noexcept override
    {
        pollfd ready{.fd = descriptor_, .events = POLLIN, .revents = 0};
        return ::poll(&ready, 1, 0) == 0;
    }
    bool send(const weir::remote::trip& asked) noexcept override
    {
        far_->note(asked);
        late_ = !late_;
        return late_ || push();
    }
    progress advance(weir::remote::trip& asked) noexcept override
    {
        if (std::exchange(late_, false) && !push()) return progress::broken;
        char       byte = 0;
        const auto got  = recv(descriptor_, &byte, 1, MSG_DONTWAIT);
        if (got < 0 && errno == EAGAIN) return progress::busy;
        if (got != 1) return progress::broken;
        switch (static_cast<word>(byte)) {
        case word::answer:
            return far_->answer(asked), progress::answered;
        case word::again:
            return progress::again;
        case word::lock:
            return progress::locked;
        case word::refuse:
            return progress::refused;
        case word::undo:
            return progress::undone;
        default:
            return progress::broken;
        }
    }
    [[nodiscard]] int  descriptor() const noexcept override { return descriptor_; }
    [[nodiscard]] bool writes() const noexcept override { return late_; }

private:
    bool push() const noexcept
    {
        const char byte = 0;
        return ::send(descriptor_, &byte, 1, MSG_NOSIGNAL) == 1;
    }

    far_side* far_;
    int       descriptor_;
    bool      late_ = false;
};

inline std::unique_ptr<weir::remote::wire> far_side::connect()
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
    {
        const std::lock_guard turn(mutex_);
        fresh_.push_back(ends[1]);
    }
    ring();
    return std::make_unique<near_end>(*this, ends[0]);
}

}  // namespace reference
