// SPDX-License-Identifier: BSL-1.0

#include "weir/store/packing.hpp"

#include "catch.hpp"
#include "reference/one_client.hpp"

#include <chrono>
#include <cstdint>
#include <limits>
#include <vector>

using namespace std::chrono_literals;
using reference::t;

namespace {

/// Whether the state comes back as it was, read by an ask of `at`.
template <class Policy>
bool kept(const Policy& limit, const typename Policy::state& state, weir::instant at)
{
    const weir::packing<Policy> pack(limit);
    const auto                  slot = pack.pack(state, pack.at(at));
    const bool tag_is_clear = (slot.head >> pack.stamp_bits()) == 0 && (slot.head & 1) == 0;
    return tag_is_clear && pack.unpack(slot, pack.at(at)) == state;
}

}  // namespace

TEST_CASE("a slot keeps counts to the most that it states, of windows around the ask's",
          "[packing]")
{
    constexpr auto full = weir::packing<weir::sliding_window>::most();
    CHECK(full == (std::uint64_t{1} << 33) - 1);
    for (const auto window :
         {weir::duration(1ms), weir::duration(1s), weir::duration(1h), weir::duration(24h) * 365}) {
        const auto at       = t(1'234'567);
        const auto start    = weir::window_start(at, window);
        const auto long_ago = window > 24h ? start : start - 1000 * window;
        for (const auto& from : {start, start - window, start + window, long_ago}) {
            for (const auto used : {std::uint64_t{1}, std::uint64_t{1} << 32,
                                    std::numeric_limits<std::uint64_t>::max()})
                CHECK(kept(weir::fixed_window{.limit = 1, .window = window}, {from, used}, at));
            for (const auto current : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 31,
                                       std::uint64_t{1} << 32, full})
                for (const auto previous :
                     {std::uint64_t{1}, std::uint64_t{1} << 31, std::uint64_t{1} << 32, full})
                    CHECK(kept(weir::sliding_window{.limit = 1, .window = window},
                               {from, current, previous}, at));
        }
    }
}

TEST_CASE("a slot keeps any instant of gcra", "[packing]")
{
    for (const auto full_at : {weir::instant::min(), weir::instant(-1ns), weir::instant(0ns),
                               weir::instant(1ns), t(0), weir::instant::max()})
        CHECK(kept(weir::gcra{.limit = 1}, {full_at}, t(0)));
}

TEST_CASE("a slot of zeros is the untouched state", "[packing]")
{
    const auto empty = [](const auto& limit) {
        const weir::packing<std::remove_cvref_t<decltype(limit)>> pack(limit);
        return pack.unpack({}, pack.at(t(0))) ==
                   typename std::remove_cvref_t<decltype(limit)>::state{} &&
               pack.pack({}, pack.at(t(0))).word == 0;
    };
    CHECK(empty(weir::fixed_window{}));
    CHECK(empty(weir::sliding_window{}));
    CHECK(empty(weir::gcra{}));
}

TEST_CASE("counts above what a slot holds stop at the most that it holds", "[packing]")
{
    const weir::packing<weir::sliding_window> pack({.limit = 1, .window = 1s});
    const auto                                now = pack.at(t(0));
    const auto                                back =
        pack.unpack(pack.pack({t(0), ~std::uint64_t{0}, std::uint64_t{1} << 40}, now), now);
    CHECK(back.current == pack.most());
    CHECK(back.previous == pack.most());
}
