// SPDX-License-Identifier: BSL-1.0

// Who serves callbacks is not asleep when there is something to serve. What nobody serves is told
// late, by the outage rule, or never.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "stores.hpp"
#include "weir/limiter.hpp"
#include "weir/postgres/store.hpp"

#include "catch.hpp"

using namespace std::chrono_literals;

namespace {

constexpr weir::fixed_window plenty{.limit = 1'000, .window = scratch::for_ever};

using limiter = weir::limiter<weir::fixed_window, weir::postgres::store>;

/// One ask at a time, the next one from the callback of the one before. It outlives the store,
/// which calls back whoever still waits when it goes.
class chain {
public:
    explicit chain(std::size_t length) : left_(length) {}

    /// How many asks were left when all were answered, or nobody answered any more.
    std::size_t run(const limiter& on)
    {
        on_ = &on;
        ask();
        std::unique_lock held(turn_);
        done_.wait_for(held, 10s, [&] { return left_ == 0; });
        return std::exchange(left_, 0);
    }

    [[nodiscard]] std::size_t unanswered() const noexcept { return unanswered_; }

private:
    void ask()
    {
        on_->admit_then(std::to_string(left_), [this](const weir::decision& made) {
            {
                const std::lock_guard held(turn_);
                if (left_ == 0) return;
                unanswered_ += made.basis != weir::basis::counted;
                if (--left_ == 0) return done_.notify_one();
            }
            ask();
        });
    }

    const limiter*          on_ = nullptr;
    std::size_t             left_;
    std::size_t             unanswered_ = 0;
    std::mutex              turn_;
    std::condition_variable done_;
};

}  // namespace

TEST_CASE("a callback may ask for any key, whichever connection that one is asked on", "[postgres]")
{
    const scratch::future_schema home("chain");
    auto                         options = scratch::in(home.name());
    options.connections                  = 4;
    chain                 keys(200);
    weir::postgres::store counters(options);
    const limiter         ip("ip", plenty, counters);
    CHECK(keys.run(ip) == 0);
    CHECK(keys.unanswered() == 0);
}

TEST_CASE("asks that are under way when the first callback is left are answered", "[postgres]")
{
    const scratch::future_schema home("first_callback");
    auto                         options = scratch::in(home.name());
    options.deadline                     = 2s;
    options.connections                  = 1;
    std::atomic<int> unanswered          = 0;
    for (int round = 0; round < 200; ++round) {
        weir::postgres::store    counters(options);
        const limiter            ip("ip", plenty, counters);
        std::atomic<bool>        over  = false;
        std::atomic<int>         asked = 0;
        std::vector<std::thread> crew;
        for (int n = 0; n < 8; ++n)
            crew.emplace_back([&, name = std::to_string(n)] {
                while (!over) {
                    unanswered += ip.peek(name).basis != weir::basis::counted;
                    ++asked;
                }
            });
        while (asked < 16) std::this_thread::yield();
        scratch::countdown first(1);
        ip.admit_then("first", [&](const weir::decision& made) {
            unanswered += made.basis != weir::basis::counted;
            first.one_less();
        });
        first.wait();
        over = true;
        for (auto& one : crew) one.join();
    }
    CHECK(unanswered == 0);
}
