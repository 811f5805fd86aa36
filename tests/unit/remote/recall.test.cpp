// SPDX-License-Identifier: BSL-1.0

#include "weir/remote/recall.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "../../reference/random.hpp"
#include "catch.hpp"

namespace {

template <class Value>
std::optional<Value> found(const weir::remote::recall<Value>& known, const weir::key& who)
{
    Value value{};
    return known.find(who, value) ? std::optional(value) : std::nullopt;
}

/// Keys that share a set whatever its number: they differ in their high halves only.
constexpr weir::key neighbour(std::uint64_t number) { return {number, 42}; }

}  // namespace

TEST_CASE("what was kept is found under its key and under no other", "[recall]")
{
    weir::remote::recall<int> known(100);
    known.keep({1, 2}, 12);
    CHECK(found(known, {1, 2}) == 12);
    CHECK(!found(known, {2, 1}));
    CHECK(!found(known, {1, 3}));
    CHECK(!found(known, {3, 2}));
}

TEST_CASE("a key that is kept again has the new value only", "[recall]")
{
    weir::remote::recall<int> known(100);
    known.keep({1, 2}, 12);
    known.keep({1, 2}, 13);
    CHECK(found(known, {1, 2}) == 13);
    known.drop({1, 2});
    CHECK(!found(known, {1, 2}));
}

TEST_CASE("a ninth key of a set pushes out one of the eight, and each in its turn", "[recall]")
{
    weir::remote::recall<int> known(100);
    const auto                kept = [&](int from, int to) {
        int sum = 0;
        for (int n = from; n <= to; ++n)
            sum += found(known, neighbour(static_cast<unsigned>(n))) == n;
        return sum;
    };
    for (int n = 1; n <= 8; ++n) known.keep(neighbour(static_cast<unsigned>(n)), n);
    CHECK(kept(1, 8) == 8);
    for (int n = 9; n <= 16; ++n) {
        known.keep(neighbour(static_cast<unsigned>(n)), n);
        known.keep(neighbour(static_cast<unsigned>(n)), n);  // it has its way already
        CHECK(kept(9, n) == n - 8);
        CHECK(kept(1, 8) == 16 - n);
    }
}

TEST_CASE("a dropped key leaves its way to the next one and its neighbour alone", "[recall]")
{
    weir::remote::recall<int> known(100);
    known.keep(neighbour(1), 1);
    known.keep(neighbour(2), 2);
    known.drop(neighbour(2));
    CHECK(found(known, neighbour(1)) == 1);
    CHECK(!found(known, neighbour(2)));
    known.keep(neighbour(3), 3);
    CHECK(found(known, neighbour(1)) == 1);
    CHECK(found(known, neighbour(3)) == 3);
    known.drop(neighbour(4));  // not there
    CHECK(found(known, neighbour(1)) == 1);
}

TEST_CASE("a value kept on a condition asks the old one, and needs none where there is none",
          "[recall]")
{
    weir::remote::recall<int> known(100);
    const auto smaller = [](int than) { return [=](int old) { return old < than; }; };
    known.keep_if({1, 2}, 5, smaller(5));
    CHECK(found(known, {1, 2}) == 5);
    known.keep_if({1, 2}, 4, smaller(4));
    CHECK(found(known, {1, 2}) == 5);
    known.keep_if({1, 2}, 6, smaller(6));
    CHECK(found(known, {1, 2}) == 6);
}

TEST_CASE("a condition that declines changes no value and pushes nobody out", "[recall]")
{
    weir::remote::recall<int> known(100);
    for (int n = 1; n <= 8; ++n) known.keep(neighbour(static_cast<unsigned>(n)), n);
    known.keep_if(neighbour(1), 11, [](int) { return false; });
    for (int n = 1; n <= 8; ++n) CHECK(found(known, neighbour(static_cast<unsigned>(n))) == n);
    known.keep(neighbour(9), 9);
    CHECK(!found(known, neighbour(1)));
}

TEST_CASE("with room for nothing nothing is remembered", "[recall]")
{
    weir::remote::recall<int> known(0);
    known.keep({1, 2}, 12);
    known.keep_if({1, 2}, 12, [](int) { return true; });
    known.drop({1, 2});
    CHECK(!found(known, {1, 2}));
}

TEST_CASE("the key of zeros is never found, kept or not", "[recall]")
{
    weir::remote::recall<int> known(1);
    CHECK(!found(known, {}));
    known.keep({}, 12);
    CHECK(!found(known, {}));
    known.drop({});
    known.keep({0, 1}, 1);
    known.keep({1, 0}, 2);
    CHECK(found(known, {0, 1}) == 1);
    CHECK(found(known, {1, 0}) == 2);
}

TEST_CASE("values of any size come back whole", "[recall]")
{
    using odd = std::array<unsigned char, 13>;
    weir::remote::recall<char> one(2);
    weir::remote::recall<odd>  more(2);
    constexpr odd              value{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
    one.keep({1, 2}, 'x');
    more.keep({1, 2}, value);
    CHECK(found(one, {1, 2}) == 'x');
    CHECK(found(more, {1, 2}) == value);
}

TEST_CASE("a million keys take no more memory, push out only some, and are never mixed up",
          "[recall]")
{
    reference::generator                random(1);
    weir::remote::recall<std::uint64_t> known(1'000);
    const auto                          bytes = known.bytes();
    CHECK(bytes < 1'024 * 40);
    int  wrong = 0;
    bool last  = true;
    for (int i = 0; i < 1'000'000; ++i) {
        const weir::key who{random(), random()};
        known.keep(who, who.high ^ who.low);
        last = last && found(known, who) == (who.high ^ who.low);
        const weir::key other{random(), random()};
        wrong += found(known, other).has_value();
    }
    CHECK(last);
    CHECK(wrong == 0);
    CHECK(known.bytes() == bytes);
}
