// SPDX-License-Identifier: BSL-1.0

#include "weir/inflight.hpp"

#include "catch.hpp"
#include "race/crew.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace {

/// How many hold a place, counted without the inflight, and the most that ever did.
class witness {
public:
    void comes() noexcept
    {
        const auto now  = inside_.fetch_add(1) + 1;
        auto       seen = most_.load();
        while (seen < now && !most_.compare_exchange_weak(seen, now)) {}
    }
    void               goes() noexcept { inside_.fetch_sub(1); }
    [[nodiscard]] int  inside() const noexcept { return inside_.load(); }
    [[nodiscard]] int  most() const noexcept { return most_.load(); }

private:
    std::atomic<int> inside_{0}, most_{0};
};

/// Holds a place until others had their turn.
void work_a_while()
{
    for (int i = 0; i < 3; ++i) std::this_thread::yield();
}

}  // namespace

TEST_CASE("O47: of 200 threads at once ten hold a place, never more, and none is lost after",
          "[inflight]")
{
    weir::inflight   uploads("uploads", {.per_key = 10});
    witness          seen;
    std::atomic<int> admitted{0}, wrong{0};
    race::all_at_once(
        200, 100,
        [&](std::size_t, std::size_t) {
            const auto permit = uploads.enter("client");
            if (!permit) return;
            seen.comes(), ++admitted;
            // All ten places are taken before the first is given back: who comes late is refused.
            for (int i = 0; i < 100'000 && admitted.load() < 10; ++i) std::this_thread::yield();
            seen.goes();
        },
        [&](std::size_t) {
            wrong += admitted.exchange(0) < 10;
            wrong += uploads.held() != 0 || uploads.held("client") != 0;
        });
    CHECK(seen.most() == 10);
    CHECK(wrong == 0);
    CHECK(uploads.enter("client"));
}

TEST_CASE("one place left in total goes to exactly one of 16 keys that enter at once", "[inflight]")
{
    weir::inflight           uploads("uploads", {.per_key = 1, .in_total = 3});
    const auto               first = uploads.enter("first"), second = uploads.enter("second");
    std::atomic<int>         admitted{0}, wrong{0};
    std::vector<weir::permit> kept;
    for (int i = 0; i < 16; ++i) kept.push_back(uploads.enter("first"));  // refused: holds nothing

    race::all_at_once(
        16, 2000,
        [&](std::size_t thread, std::size_t round) {
            kept[thread] = uploads.enter(weir::key{thread << 60, round});
            admitted += bool(kept[thread]);
        },
        [&](std::size_t) {
            wrong += admitted.exchange(0) != 1 || uploads.held() != 3;
            for (auto& permit : kept) permit.release();
        });
    CHECK(wrong == 0);
    CHECK(uploads.held() == 2);
}

TEST_CASE("two threads that enter with one new key at once make one counter of it", "[inflight]")
{
    weir::inflight                           uploads("uploads", {.per_key = 1, .in_total = 64});
    std::array<std::optional<weir::permit>, 2> kept;
    std::atomic<int>                         wrong{0};
    race::all_at_once(
        2, race::many(200'000),
        [&](std::size_t thread, std::size_t round) {
            // Four keys of one bucket in turn, so that holders come and go beside it.
            kept[thread].emplace(uploads.enter(weir::key{1, round % 4}));
        },
        [&](std::size_t round) {
            wrong += bool(*kept[0]) == bool(*kept[1]) || uploads.held(weir::key{1, round % 4}) != 1;
            for (auto& permit : kept) permit.reset();
        });
    CHECK(wrong == 0);
    CHECK(uploads.held() == 0);
}

// Keys that share buckets, enter, move and leave at will. The witnesses know nothing of the table.
TEST_CASE("keys that come and go never hold more than their places, nor all more than the total",
          "[inflight]")
{
    constexpr std::size_t     keys = 12;
    weir::inflight            uploads("uploads", {.per_key = 2, .in_total = 6});
    witness                   all;
    std::array<witness, keys> of;
    race::all_at_once(
        8, 1,
        [&](std::size_t thread, std::size_t) {
            std::minstd_rand draw(static_cast<unsigned>(thread + 1));
            for (int i = 0; i < 100'000; ++i) {
                const auto who    = draw() % keys;
                auto       permit = uploads.enter(weir::key{std::uint64_t{who % 3} << 62, who});
                if (!permit) continue;
                all.comes(), of[who].comes();
                if (i % 64 == 0) work_a_while();
                weir::permit moved(std::move(permit));
                all.goes(), of[who].goes();
            }
        },
        [](std::size_t) {});
    CHECK(all.most() == 6);
    for (const auto& one : of) CHECK(one.most() == 2);
    CHECK(uploads.held() == 0);
}

TEST_CASE("limits that change while others enter hold for all who enter after the change",
          "[inflight]")
{
    weir::inflight    uploads("uploads", {.per_key = 4, .in_total = 8});
    std::atomic<int>  wrong{0};
    std::atomic<bool> over{false};
    const auto        change = [&] {
        for (int i = 0; i < 1'000'000; ++i) {
            uploads.set_limits({.per_key = 4, .in_total = 8});
            uploads.set_limits({.per_key = 1, .in_total = 2});
        }
        over = true;
    };
    const auto enter = [&] {
        while (!over) {
            const auto permit = uploads.enter("client");
            const auto limit  = permit.decision().limit;
            wrong += limit != 4 && limit != 1;  // the key's limit is the tighter one of each pair
        }
    };
    race::all_at_once(
        4, 2,
        [&](std::size_t thread, std::size_t round) {
            if (round == 1) thread == 0 ? change() : enter();  // round 0: all are here
        },
        [](std::size_t) {});
    CHECK(wrong == 0);
    CHECK(uploads.held() == 0);
    const auto only = uploads.enter("client");
    CHECK((only && !uploads.enter("client")));
}
