// SPDX-License-Identifier: BSL-1.0

#include "weir/time.hpp"

#include "catch.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

constexpr weir::instant at_second(std::int64_t seconds)
{
    return weir::instant(std::chrono::seconds(seconds));
}

}  // namespace

TEST_CASE("F25: windows start at multiples of their length since the epoch", "[time]")
{
    constexpr auto at = at_second(1'787'572'830);
    CHECK(weir::window_start(at, 7s) == at_second(1'787'572'829));
    CHECK(weir::window_end(at, 7s) - at == 6s);
    CHECK(weir::window_start(at, 24h) == at_second(1'787'529'600));
    CHECK(weir::window_start(at, 1h) == at_second(1'787'572'800));
}

TEST_CASE("F24: a window holds its start and not its end", "[time]")
{
    constexpr auto noon = at_second(1'767'268'800);
    static_assert(weir::window_start(noon, 1min) == noon);
    static_assert(weir::window_end(noon, 1min) == noon + 1min);
    static_assert(weir::window_start(noon + 1min - 1ns, 1min) == noon);
    static_assert(weir::window_start(noon + 1min, 1min) == noon + 1min);
    CHECK(weir::window_index(noon + 1min, 1min) == weir::window_index(noon, 1min) + 1);
}

TEST_CASE("windows before the epoch run on without a window of double length at zero", "[time]")
{
    static_assert(weir::window_index(weir::instant(-1ns), 10ns) == -1);
    static_assert(weir::window_start(weir::instant(-1ns), 10ns) == weir::instant(-10ns));
    static_assert(weir::window_end(weir::instant(-1ns), 10ns) == weir::instant(0ns));
    static_assert(weir::window_start(weir::instant(-10ns), 10ns) == weir::instant(-10ns));
    static_assert(weir::window_end(weir::instant(-10ns), 10ns) == weir::instant(0ns));
    static_assert(weir::window_index(weir::instant(-11ns), 10ns) == -2);
    for (std::int64_t i = -30; i < 30; ++i) {
        const weir::instant at{weir::duration(i)};
        CHECK(weir::window_start(at, 7ns) <= at);
        CHECK(at < weir::window_end(at, 7ns));
        CHECK(weir::window_end(at, 7ns) - weir::window_start(at, 7ns) == 7ns);
    }
}

TEST_CASE("O20: sums and differences of instants hold at the ends of the type", "[time]")
{
    constexpr auto first = weir::instant::min(), last = weir::instant::max();
    static_assert(weir::saturating_add(last, 1ns) == last);
    static_assert(weir::saturating_add(last, -1ns) == last - 1ns);
    static_assert(weir::saturating_add(first, -1ns) == first);
    static_assert(weir::saturating_add(first, weir::duration::max()) == weir::instant(-1ns));
    static_assert(weir::saturating_sub(last, first) == weir::duration::max());
    static_assert(weir::saturating_sub(first, last) == weir::duration::min());
    static_assert(weir::ticks_between(first, last) == ~std::uint64_t{0});
    CHECK(weir::window_start(first, weir::duration::max()) == first);
    CHECK(weir::window_end(last, weir::duration::max()) == last);
    CHECK(weir::window_end(last - 1ns, 1h) == last);
}

TEST_CASE("now() never steps back, in one thread or between several", "[time]")
{
    std::atomic<std::int64_t> latest{0};
    std::atomic<int>          backward{0};
    const auto                look = [&] {
        for (int i = 0; i < 20'000; ++i) {
            const auto before = latest.load();
            const auto at     = weir::now().time_since_epoch().count();
            backward += at < before;
            auto known = before;
            while (known < at && !latest.compare_exchange_weak(known, at)) {}
        }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back(look);
    for (auto& one : threads) one.join();
    CHECK(backward == 0);
}

TEST_CASE("now() is within a second of the system clock where that one is not set back", "[time]")
{
    const auto system =
        std::chrono::time_point_cast<weir::duration>(std::chrono::system_clock::now());
    CHECK(std::chrono::abs(weir::now() - system) < 1s);
}
