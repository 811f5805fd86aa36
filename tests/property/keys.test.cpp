// SPDX-License-Identifier: BSL-1.0

// Floods of keys: the memory is what was promised, and no flood frees an exhausted key.

#include "weir/store/memory.hpp"

#include "catch.hpp"
#include "reference/one_client.hpp"
#include "reference/random.hpp"

#include "weir/limiter.hpp"
#include "weir/store/sketch.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

using namespace std::chrono_literals;
using reference::random_number;
using reference::t;

namespace {

/// Bytes that the program has of its allocator; none where that cannot be asked (or a sanitizer
/// has taken its place).
std::size_t allocated()
{
#if defined(__GLIBC__)
    const auto now = ::mallinfo2();
    return now.uordblks + now.hblkhd;
#else
    return 0;
#endif
}

weir::key numbered(std::uint64_t i)
{
    const auto mixed = weir::sip_hash({1, 2}).feed(i).finish();
    return {mixed.high, mixed.low};
}

/// The share of `probes` keys that nobody has used and that are refused all the same.
template <class Limiter>
double refused_share(const Limiter& limiter, std::uint64_t first, weir::instant at)
{
    constexpr int probes  = 4'000;
    int           refused = 0;
    for (std::uint64_t i = first; i < first + probes; ++i)
        refused += !limiter.peek(numbered(i), {}, at);
    return static_cast<double>(refused) / probes;
}

}  // namespace

TEST_CASE("O42: ten million keys on room for one take no more memory, free nobody, and are gone "
          "afterwards",
          "[keys]")
{
    constexpr std::size_t        room = 1'000'000;
    constexpr weir::fixed_window limit{.limit = 10, .window = 10min};
    const auto                   before = allocated();
    weir::memory_store           counters({.max_keys = room});
    const weir::limiter          limiter("ip", limit, counters);
    auto* const                  table  = counters.enrol("ip", limit);
    const auto                   stated = counters.bytes();
    CHECK(stated < room * 42);
    // Two arrays on edges of huge pages: what lies before the edges is address space, never
    // touched.
    CHECK(allocated() - before <= stated + stated / 10 + (4u << 20));

    for (int i = 0; i < 10; ++i) REQUIRE(limiter.admit("victim", t(0)));
    const auto    full = allocated();
    std::uint64_t next = 0;
    for (const auto keys : {1'200'000u, 2'000'000u, 3'000'000u, 10'000'000u}) {
        for (; next < keys; ++next) {
            (void)limiter.admit(numbered(next), t(1));
            if (next % 10'000 == 0) REQUIRE(!limiter.admit("victim", t(1)));
        }
        INFO("after " << keys << " keys");
        CHECK(refused_share(limiter, 1'000'000'000, t(1)) <=
              table->overflow_error(limit, t(1)) * 1.1 + 0.002);
    }
    CHECK(allocated() <= full + 4'096);
    CHECK(counters.bytes() == stated);
    CHECK(!limiter.admit("victim", t(599'999)));
    CHECK(table->live(limit, t(599'999)) > room);
    CHECK(table->live(limit, t(2 * 600'000)) == 0);
}

TEST_CASE("a small table under a crowd admits no key more often than its limit, under any policy",
          "[keys]")
{
    const auto check = [](const auto& limit, weir::overflow overflow) {
        weir::memory_store   counters({.max_keys = 40, .overflow = overflow});
        const weir::limiter  limiter("ip", limit, counters);
        reference::generator random(60'000'000);
        std::map<std::uint64_t, std::vector<weir::instant>> admitted;
        auto                                                at = t(0);
        for (int i = 0; i < 60'000; ++i) {
            at += weir::duration(random_number<std::int64_t>(random, 0, 4'000'000));
            const auto who = random_number<std::uint64_t>(random, 0, 300);
            if (limiter.admit(numbered(who), at)) admitted[who].push_back(at);
        }
        for (const auto& [who, when] : admitted)
            REQUIRE(reference::most_in_any_span(when, limit.window) <= 2 * limit.limit);
        return admitted.size();
    };
    for (const auto overflow : {weir::overflow::sketch, weir::overflow::refuse}) {
        CHECK(check(weir::fixed_window{.limit = 5, .window = 2s}, overflow) > 40);
        CHECK(check(weir::sliding_window{.limit = 5, .window = 2s}, overflow) > 40);
        CHECK(check(weir::gcra{.limit = 5, .window = 2s}, overflow) > 40);
    }
}

TEST_CASE("O44: keys that were made to share lines under another seed do not share them under ours",
          "[keys]")
{
    constexpr std::size_t        room = 20'000;
    constexpr weir::fixed_window limit{.limit = 5, .window = 1h};
    const weir::hash_seed        known{7, 8};
    const weir::digest           guessed(known, weir::fixed_window::id, "ip", 1h);
    std::vector<std::string>     chosen;
    for (std::uint64_t i = 0; chosen.size() < room / 2; ++i) {
        auto       name = std::to_string(i);
        const auto key  = guessed(name);
        if (key.high >> 61 == 0 && key.low >> 61 == 0) chosen.push_back(std::move(name));
    }
    const auto without_slot = [&](weir::hash_seed seed, bool as_chosen, std::size_t& bytes) {
        weir::memory_store  counters({.max_keys = room, .seed = seed});
        const weir::limiter limiter("ip", limit, counters);
        std::size_t         estimated = 0;
        for (std::size_t i = 0; i < chosen.size(); ++i)
            estimated +=
                limiter.admit(as_chosen ? chosen[i] : "random " + std::to_string(i), t(0)).basis ==
                weir::basis::estimated;
        bytes = counters.bytes();
        return estimated;
    };
    std::size_t at_random = 0, attacked = 0, seen_through = 0;
    const auto  usual = without_slot({1, 2}, false, at_random);
    CHECK(without_slot({1, 2}, true, attacked) <= usual + 10);
    CHECK(without_slot(known, true, seen_through) > chosen.size() / 4);  // so the choice would bite
    CHECK(attacked == at_random);
    CHECK(seen_through == at_random);
}
