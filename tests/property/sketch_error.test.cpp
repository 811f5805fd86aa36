// SPDX-License-Identifier: BSL-1.0

// What the sketch promises of its error: never under the truth, over it in the stated share.

#include "weir/count_min_sketch.hpp"

#include "catch.hpp"
#include "reference/one_client.hpp"

#include "weir/limiter.hpp"
#include "weir/store/sketch.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using reference::t;
using weir::count_min_sketch;
using weir::sketch_size;

namespace {

weir::key numbered(std::uint64_t i, std::uint64_t seed)
{
    const auto mixed = weir::sip_hash({seed, 3}).feed(i).finish();
    return {mixed.high, mixed.low};
}

/// The share of keys that a sketch over-counts which holds `keys` of one unit each, these probed
/// among them: averaged over sketches with seeds of their own.
double over_counted(sketch_size size, std::uint64_t keys, int sketches)
{
    constexpr std::uint64_t probes = 10'000;
    std::uint64_t           over   = 0;
    for (int seed = 0; seed < sketches; ++seed) {
        count_min_sketch sketch(size);
        for (std::uint64_t i = 1; i < keys; ++i)
            sketch.add(numbered(i, static_cast<std::uint64_t>(seed)), 1);
        for (std::uint64_t i = 0; i < probes; ++i)
            over +=
                sketch.estimate(numbered(1'000'000'000 + i, static_cast<std::uint64_t>(seed))) > 0;
    }
    return static_cast<double>(over) /
           static_cast<double>(probes * static_cast<std::uint64_t>(sketches));
}

double mean_excess(std::uint64_t keys, bool conservative)
{
    count_min_sketch sketch({.width = 1024});
    for (std::uint64_t i = 0; i < keys; ++i) {
        if (conservative) sketch.raise(numbered(i, 1), 1);
        else sketch.add(numbered(i, 1), 1);
    }
    std::uint64_t excess = 0;
    for (std::uint64_t i = 0; i < keys; ++i) {
        const auto estimate = sketch.estimate(numbered(i, 1));
        REQUIRE(estimate >= 1);
        excess += estimate - 1;
    }
    return static_cast<double>(excess) / static_cast<double>(keys);
}

}  // namespace

TEST_CASE("P62: the measured share of over-counted keys is the stated one within a tenth",
          "[sketch_error]")
{
    struct row {
        std::size_t   width;
        std::uint64_t keys;
        double        published;
        int           sketches;
    };
    for (const auto& [width, keys, published, sketches] :
         {row{1024, 300, 0.0041, 200}, row{1024, 500, 0.022, 60}, row{1024, 1'000, 0.151, 20},
          row{1024, 2'000, 0.54, 10}, row{1024, 3'000, 0.803, 10}, row{1024, 5'000, 0.97, 5},
          row{1024, 10'000, 0.9998, 5}, row{8192, 1'000, 0.0002, 400}, row{8192, 3'000, 0.009, 100},
          row{8192, 10'000, 0.247, 10}, row{8192, 20'000, 0.69, 5}}) {
        const sketch_size size{.width = width};
        INFO("width " << width << ", keys " << keys);
        CHECK(size.wrong_share(keys) == Approx(published).epsilon(0.03).margin(0.00005));
        CHECK(over_counted(size, keys, sketches) == Approx(size.wrong_share(keys)).epsilon(0.1));
    }
}

TEST_CASE("a sketch with much room is wrong no more often than it states", "[sketch_error]")
{
    // Rows whose cells follow from each other share all of them with a key that shares two.
    for (const auto& [width, keys] : {std::pair{256u, 30u}, std::pair{1024u, 100u}}) {
        const sketch_size size{.width = width};
        CHECK(over_counted(size, keys, 3'000) <= size.wrong_share(keys) * 1.15);
    }
}

TEST_CASE(
    "P63: one sketch holds both windows, so keys of both are wrong as often as all of them in one",
    "[sketch_error]")
{
    constexpr std::uint64_t        keys = 1'000;
    const sketch_size              size{.width = 1024};
    constexpr weir::sliding_window limit{.limit = 100, .window = 1min};
    std::uint64_t                  over = 0, probed = 0;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        weir::sketch_store  counters({.size = size, .seed = weir::hash_seed{seed, 9}});
        const weir::limiter limiter("ip", limit, counters);
        for (std::uint64_t i = 0; i < keys; ++i)
            (void)limiter.admit(numbered(i, seed), t(i < keys / 2 ? 59'000 : 60'000));
        for (std::uint64_t i = 0; i < 5'000; ++i, ++probed)
            over += limiter.peek(numbered(1'000'000 + i, seed), {}, t(60'000)).left < 100;
    }
    CHECK(static_cast<double>(over) / static_cast<double>(probed) <= size.wrong_share(keys) * 1.1);
}

TEST_CASE("P64: a sketch never under-counts, and its mean excess is the published one",
          "[sketch_error]")
{
    CHECK(mean_excess(1'000, false) == Approx(0.17).margin(0.03));
    CHECK(mean_excess(3'000, false) == Approx(1.3).margin(0.15));
    CHECK(mean_excess(10'000, false) == Approx(6.7).margin(0.4));
    CHECK(mean_excess(1'000, true) < mean_excess(1'000, false));
    CHECK(mean_excess(3'000, true) < mean_excess(3'000, false) * 0.6);
}

TEST_CASE(
    "P64: what a sketch refuses in excess is the share that it states, none where it has room",
    "[sketch_error]")
{
    const auto refused = [](std::uint64_t keys, int hits, std::uint64_t most, sketch_size size) {
        constexpr std::uint64_t sketches = 20;
        std::uint64_t           count    = 0;
        for (std::uint64_t seed = 0; seed < sketches; ++seed) {
            weir::sketch_store  counters({.size = size});
            const weir::limiter limiter("ip", weir::fixed_window{.limit = most, .window = 1h},
                                        counters);
            for (int hit = 0; hit < hits; ++hit)
                for (std::uint64_t i = 0; i < keys; ++i)
                    count += !limiter.admit(numbered(i, seed), t(0));
        }
        return static_cast<double>(count) /
               static_cast<double>(keys * sketches * static_cast<std::uint64_t>(hits));
    };
    const sketch_size narrow{.width = 1024};
    CHECK(refused(3'000, 1, 5, narrow) == 0);
    // Published is 0.03, of a sketch that takes refused units back; the mean of the formula while
    // the keys arrive is 0.041.
    CHECK(refused(1'000, 1, 1, narrow) == Approx(0.041).epsilon(0.1));
    CHECK(refused(10'000, 1, 1, narrow) <= 0.79);
    CHECK(refused(10'000, 1, 5, narrow) <= 0.256);
    CHECK(refused(10'000, 1, 5, sketch_size::for_keys(10'000, 0.0001)) == 0);
    CHECK(refused(10'000, 5, 10, sketch_size::for_keys(10'000, 0.0001)) == 0);
}

TEST_CASE("O45: a fresh key's estimate passes e/w x N as rarely as the theory says",
          "[sketch_error]")
{
    count_min_sketch sketch({.width = 2048});
    for (std::uint64_t i = 0; i < 200'000; ++i) sketch.add(numbered(i, 4), 1);
    int within = 0;
    for (std::uint64_t i = 0; i < 10'000; ++i)
        within += sketch.estimate(numbered(1'000'000'000 + i, 4)) <= 265;
    CHECK(within >= 9'810);
}

TEST_CASE("O45: two seeds find different innocents too high, no more in common than chance",
          "[sketch_error]")
{
    constexpr std::uint64_t innocents = 20'000;
    const auto              too_high  = [&](std::uint64_t seed) {
        count_min_sketch sketch({.width = 2048});
        for (std::uint64_t i = 0; i < 2'000; ++i) sketch.add(numbered(i, seed), 1);
        std::set<std::uint64_t> high;
        for (std::uint64_t i = 0; i < innocents; ++i)
            if (sketch.estimate(numbered(1'000'000'000 + i, seed)) > 0) high.insert(i);
        return high;
    };
    const auto                 here = too_high(11), there = too_high(12);
    std::vector<std::uint64_t> common;
    std::set_intersection(here.begin(), here.end(), there.begin(), there.end(),
                          std::back_inserter(common));
    const auto chance =
        static_cast<double>(here.size()) * static_cast<double>(there.size()) / innocents;
    CHECK(chance > 100);
    CHECK(static_cast<double>(common.size()) < chance * 1.25);
    CHECK(static_cast<double>(common.size()) > chance * 0.75);
}
