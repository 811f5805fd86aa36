// SPDX-License-Identifier: BSL-1.0
#pragma once

// The queue before one connection. While a round trip is under way the asks that come wait, and the
// next one carries all of them: no timer, and the more come the more share a statement. Whoever
// waits drives the connection if nobody else does; a thread is needed only where callers leave a
// callback (attendant.hpp).

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "weir/remote/birthplace.hpp"
#include "weir/remote/breaker.hpp"
#include "weir/remote/held_keys.hpp"
#include "weir/remote/seat.hpp"
#include "weir/remote/trip.hpp"
#include "weir/remote/wire.hpp"
#include "weir/time.hpp"

namespace weir::remote {

struct line_options {
    duration    deadline    = std::chrono::milliseconds(50);  ///< Of a round trip.
    std::size_t waiting     = 4'096;  ///< Asks under way at once; there is no room for more.
    std::size_t sweep_after = 256;    ///< Rows, after which a trip tidies up.
};

/// Who looks after a line: finds it another connection, serves its callbacks, hears of its state.
/// Thread-safe; called without the line's lock.
class caretaker {
public:
    virtual void lost() noexcept                = 0;  ///< A line has no connection any more.
    virtual void poke() noexcept                = 0;  ///< A line that is served has work.
    virtual void changed(bool answers) noexcept = 0;  ///< The store went away, or is back.

protected:
    ~caretaker() = default;
};

/// Thread-safe. No caller waits longer than its own deadline, and no fault of the store is thrown.
class line {
public:
    using clock      = std::chrono::steady_clock;
    using time_point = clock::time_point;

    line(const line_options& options, caretaker& keeper) : options_(options), keeper_(&keeper) {}
    line(const line&)            = delete;
    line& operator=(const line&) = delete;
    ~line();

    /// Blocks until the seat is answered or its deadline comes; `answered` tells.
    void ask(seat& own) noexcept;

    /// Does not block. False if the seat was not taken; else `complete` is called once, by whoever
    /// serves. Needs an attendant.
    bool post(seat& one) noexcept;

    /// A connection in place of none.
    void mend(std::unique_ptr<wire> with) noexcept;

    /// From now on callers do not drive: an attendant calls `serve`.
    void be_served() noexcept;

    /// What to wait for before `serve` is worth a call again.
    struct attention {
        int        descriptor = -1;
        bool       writes     = false;
        time_point until      = time_point::max();
    };

    /// All that can be done at the moment without waiting; runs callbacks.
    attention serve() noexcept;

    /// Callers who still wait for a callback get it, unanswered. Nobody may ask any more.
    void close() noexcept;

    [[nodiscard]] bool connected() const noexcept
    {
        return connected_.load(std::memory_order_acquire);
    }

    /// A thing to tidy up was seen.
    void sweep_soon() noexcept { sweep_due_.store(true, std::memory_order_relaxed); }

private:
    using turn = std::unique_lock<std::mutex>;

    bool enter(seat& one) noexcept;
    bool may_wait(seat& one, time_point at) noexcept;
    void leave(seat& own) noexcept;
    void drive(turn& held, seat& own) noexcept;
    void hand_over(const seat& own) noexcept;

    void       start(turn& held) noexcept;
    void       send(turn& held) noexcept;
    void       go_on(turn& held, time_point until) noexcept;
    void       settle(turn& held, wire::progress come) noexcept;
    void       answer() noexcept;
    void       fail_trip() noexcept;
    void       put_back(bool apart) noexcept;
    void       note_held(wire::progress come) noexcept;
    void       lose(turn& held) noexcept;
    time_point expire(time_point at) noexcept;
    void       gone(turn& held, seat& own) noexcept;
    void       judge(turn& held, bool answered) noexcept;

    template <class Visit>
    void each_seat(Visit&& visit) noexcept;
    void finish(seat& one, bool answered) noexcept;
    void deliver(turn& held) noexcept;

    [[nodiscard]] bool under_way() const noexcept { return trip_.carries != trip::kind::none; }

    birthplace   born_;
    line_options options_;
    caretaker*   keeper_;
    breaker      breaker_;

    std::atomic<bool> connected_ = false;
    std::atomic<bool> sweep_due_ = false;

    std::mutex            mutex_;
    std::unique_ptr<wire> wire_;  // used without the lock by who drives, and by nobody else
    trip                  trip_;  // its seats only under the lock, the rest as the wire
    seats                 waiting_;
    held_keys             held_;
    std::size_t           inside_ = 0;  // seats in waiting_ and in trip_
    std::size_t           rows_   = 0;  // since the last sweep
    seat*                 driver_ = nullptr;
    bool                  served_ = false;
    std::vector<seat*>    done_;  // of who drives: to be told when the lock is free
};

}  // namespace weir::remote
