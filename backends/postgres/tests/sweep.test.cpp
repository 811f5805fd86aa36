// SPDX-License-Identifier: BSL-1.0

// A flood of addresses that are seen once leaves no table behind (F67-F69).

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "weir/limiter.hpp"

#include "catch.hpp"
#include "stores.hpp"

using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

using limiter = weir::limiter<weir::fixed_window, weir::postgres::store>;

/// Asks for the keys first … last - 1 at once, `times` each; counts what was not counted.
std::uint64_t ask(const limiter& one, int first, int last, int times)
{
    std::atomic<std::uint64_t> wrong = 0;  // told here or on a thread of the store
    scratch::countdown         left(static_cast<std::size_t>((last - first) * times));
    for (int n = first; n < last; ++n)
        for (int i = 0; i < times; ++i)
            one.admit_then(std::to_string(n), [&](const weir::decision& made) {
                wrong += made.basis != weir::basis::counted;
                left.one_less();
            });
    left.wait();
    return wrong;
}

}  // namespace

TEST_CASE("100000 spent and refused addresses leave a bounded table, and no live row is swept",
          "[postgres]")
{
    constexpr int         addresses = 100'000, wave = 500, lasts = 500;
    const scratch::schema home("swept");
    scratch::session      by;
    auto                  options = scratch::without_memory(scratch::in(home.name()));
    options.keep                  = {};
    options.connections           = 1;  // two sweep as much, but each where it happens to be
    weir::postgres::store    counters(options);
    const weir::fixed_window second{.limit = 1, .window = 1s};
    const limiter            brief("brief", second, counters);
    const limiter lasting("lasting", {.limit = 1, .window = scratch::for_ever}, counters);
    CHECK(ask(lasting, 0, lasts, 2) == 0);

    // After 256 rows asked a sweep looks at 16 pages, and 68 rows are in a page at least: until a
    // vacuum gives pages back, a sweep is round when a quarter of all rows there ever were has come
    // again. So there are those that live, which came in the last second, and a quarter of all.
    const auto rows = [&] { return by.must("SELECT count(*) FROM " + home / "counters").number(); };
    std::deque<std::pair<steady_clock::time_point, int>> pace;
    for (int sent = 0; sent < addresses; sent += wave) {
        pace.emplace_back(steady_clock::now(), sent);
        CHECK(ask(brief, sent, sent + wave, 2) == 0);
        while (steady_clock::now() - pace.front().first > 1s && pace.size() > 1) pace.pop_front();
        if (sent / wave % 20 != 0) continue;
        const auto live = sent + wave - pace.front().second;
        CHECK(rows() <= lasts + live + (sent + wave) / 4 + 4 * 16 * 68);
    }

    const auto flooded = steady_clock::now();
    const auto on      = [&] { CHECK(ask(lasting, 0, lasts, 1) == 0); };  // what others ask
    while (steady_clock::now() - flooded < 3 * second.window) on();
    for (int asked = 0; asked < addresses / 4 + 5'000; asked += lasts) on();
    CHECK(rows() == lasts);
    for (int n = 0; n < lasts; n += 50) CHECK(!lasting.admit(std::to_string(n)));
}
