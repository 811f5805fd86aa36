// SPDX-License-Identifier: BSL-1.0
#pragma once

// The one who asks the file: a thread that carries all asks that came while the last transaction
// was under way in the next one. A part of the store, not for users.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "weir/key.hpp"
#include "weir/sqlite/connection.hpp"
#include "weir/sqlite/spending.hpp"
#include "weir/time.hpp"

namespace weir::sqlite {

struct writer_options {
    place       where   = {};
    duration    keep    = {};      ///< How long a row outlives its recovery.
    std::size_t waiting = 1'024;   ///< Asks under way at once; there is no room for more.
};

/// Thread-safe. A caller waits until its own deadline and not longer, whatever the file, the disk
/// or another process does: what it leaves behind lies here, and is dropped if it was not begun.
class writer {
public:
    /// Throws what `connection` and std::thread throw.
    explicit writer(const writer_options& options);
    ~writer();
    writer(const writer&)            = delete;
    writer& operator=(const writer&) = delete;

    [[nodiscard]] bool secret_changed() const noexcept { return secret_changed_; }

    /// Unanswered if there was no room, the deadline passed, or the file failed. An ask that was
    /// begun when its caller left may still be counted.
    [[nodiscard]] outcome perform(const step&                           asked,
                                  std::chrono::steady_clock::time_point until) noexcept;

private:
    /// Where an ask lies from its caller's coming to whoever of caller and thread goes last.
    struct seat {
        enum class stage : std::uint8_t { free, waiting, begun, left, done };

        step                    asked = {};
        outcome                 said  = {};
        seat::stage             at    = stage::free;
        std::condition_variable ready = {};
    };
    using seats = std::vector<std::uint32_t>;
    using turn  = std::unique_lock<std::mutex>;

    static constexpr std::chrono::microseconds shortest_pause{50};

    void work() noexcept;
    void look(turn& held) noexcept;
    void change(turn& held) noexcept;
    void fail_all() noexcept;
    void pause(turn& held) noexcept;
    bool usable(turn& held) noexcept;

    void begin(seats& queue) noexcept;
    int  run_batch(bool changes) noexcept;
    int  run_each() noexcept;
    void sweep() noexcept;
    void deliver(bool kept) noexcept;

    writer_options              options_;
    std::unique_ptr<connection> connection_;  // the thread's own once it runs
    bool                        secret_changed_ = false;
    key                         swept_to_;
    std::uint64_t               spent_ = 0;
    std::chrono::microseconds             pause_      = shortest_pause;  // between tries to write
    std::chrono::steady_clock::time_point look_again_ = {};              // for a file that is lost

    std::mutex              mutex_;
    std::condition_variable wake_;
    std::unique_ptr<seat[]> seats_;
    seats                   free_, looks_, changes_;
    seats                   batch_;  // the thread's own: what is being run
    bool                    stopping_ = false;
    std::thread             thread_;
};

}  // namespace weir::sqlite
