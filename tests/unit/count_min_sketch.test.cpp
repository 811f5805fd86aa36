// SPDX-License-Identifier: BSL-1.0

#include "weir/count_min_sketch.hpp"

#include "catch.hpp"

#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <thread>
#include <vector>

using weir::count_min_sketch;
using weir::sketch_size;

namespace {

constexpr auto most = std::numeric_limits<count_min_sketch::count>::max();

constexpr weir::key someone{0x0123456789abcdef, 0xfedcba9876543210};

/// What threads that each count the key a thousand times leave behind.
template <class Count>
count_min_sketch::count counted_by(int threads, Count&& count)
{
    count_min_sketch         sketch({.width = 64});
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i)
        all.emplace_back([&] {
            for (int n = 0; n < 1'000; ++n) count(sketch);
        });
    for (auto& one : all) one.join();
    return sketch.estimate(someone);
}

}  // namespace

TEST_CASE("a key alone in a sketch is counted exactly", "[count_min_sketch]")
{
    count_min_sketch sketch({});
    CHECK(sketch.estimate(someone) == 0);
    CHECK(sketch.add(someone, 3) == 3);
    CHECK(sketch.add(someone, 4) == 7);
    sketch.subtract(someone, 5);
    CHECK(sketch.estimate(someone) == 2);
    sketch.clear();
    CHECK(sketch.raise(someone, 3) == 3);
    CHECK(sketch.raise(someone, 4) == 7);
}

TEST_CASE("cells hold at the ends of their type", "[count_min_sketch]")
{
    count_min_sketch added({}), raised({});
    CHECK(added.add(someone, most) == most);
    CHECK(added.add(someone, most) == most);
    CHECK(raised.raise(someone, most) == most);
    CHECK(raised.raise(someone, 1) == most);
    added.clear();
    added.subtract(someone, 1);
    CHECK(added.estimate(someone) == 0);
}

TEST_CASE("threads that count one key at once lose no unit", "[count_min_sketch]")
{
    CHECK(counted_by(8, [](count_min_sketch& sketch) { sketch.add(someone, 1); }) == 8'000);
    CHECK(counted_by(8, [](count_min_sketch& sketch) { sketch.raise(someone, 1); }) >= 8'000);
}

TEST_CASE("the width for so many keys keeps the share of wrong ones within the error",
          "[count_min_sketch]")
{
    for (const std::uint64_t keys : {1u, 2u, 300u, 10'000u, 1'000'000u})
        for (const double error : {0.5, 0.01, 0.000'001}) {
            const auto size = sketch_size::for_keys(keys, error);
            CHECK(size.wrong_share(keys) <= error * 1.000'001);
            if (keys > 2)
                CHECK(sketch_size{.width = size.width - 1}.wrong_share(keys) > error * 0.999);
        }
}

TEST_CASE("the share of wrong keys is none for one key and grows with the keys",
          "[count_min_sketch]")
{
    constexpr sketch_size size{.width = 1024};
    CHECK(size.wrong_share(0) == 0);
    CHECK(size.wrong_share(1) == 0);
    CHECK(size.wrong_share(1'000) < size.wrong_share(1'001));
    CHECK(size.wrong_share(10'000'000) == Approx(1));
}

TEST_CASE("a sketch without cells, or of more than eight rows, is refused", "[count_min_sketch]")
{
    CHECK_THROWS_AS(count_min_sketch({.width = 0}), std::invalid_argument);
    CHECK_THROWS_AS(count_min_sketch({.width = 1, .depth = 0}), std::invalid_argument);
    CHECK_THROWS_AS(count_min_sketch({.width = 1, .depth = 9}), std::invalid_argument);
    CHECK_NOTHROW(count_min_sketch({.width = 1, .depth = 8}));
    CHECK_THROWS_AS(sketch_size::for_keys(0, 0.1), std::invalid_argument);
    CHECK_THROWS_AS(sketch_size::for_keys(1, 0.0), std::invalid_argument);
    CHECK_THROWS_AS(sketch_size::for_keys(1, 1.0), std::invalid_argument);
    CHECK_THROWS_AS(sketch_size::for_keys(1, std::nan("")), std::invalid_argument);
}

TEST_CASE("a key's cells lie one in each row", "[count_min_sketch]")
{
    constexpr sketch_size size{.width = 10, .depth = 8};
    for (std::uint64_t i = 0; i < 1'000; ++i)
        for (std::size_t row = 0; row < 8; ++row) {
            const auto cell = size.cell({i * 0x9e3779b97f4a7c15, ~i * 0xbf58476d1ce4e5b9}, row);
            REQUIRE(cell >= row * 10);
            REQUIRE(cell < row * 10 + 10);
        }
}
