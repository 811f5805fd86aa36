// SPDX-License-Identifier: BSL-1.0

// X5, O36: bytes between a store and its server are late, lost, or cut off.

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "proxy.hpp"
#include "scene.hpp"

using namespace faults;

TEST_CASE("bytes that are late, lost or cut off: in time by the rule, and authoritative once they "
          "flow (X5)",
          "[faults][X5]")
{
    struct fault {
        std::string                 name;
        std::function<void(proxy&)> begin;
        bool                        outage = true;  // no answer comes while it lasts
    };
    const std::vector<fault> faults{
        {"asks dropped", [](proxy& on) { on.drop(true, false); }},
        {"answers dropped", [](proxy& on) { on.drop(false, true); }},
        {"all dropped", [](proxy& on) { on.drop(true, true); }},
        {"200 ms late", [](proxy& on) { on.delay(200ms); }},
        {"cut after 1 byte", [](proxy& on) { on.cut_after(1); }},
        {"cut after 700 bytes", [](proxy& on) { on.cut_after(700); }},
        {"reset and refused", [](proxy& on) { on.refuse(), on.reset(); }},
        {"reset once", [](proxy& on) { on.reset(); }, false},
        {"half-open once", [](proxy& on) { on.abandon(); }, false},
    };
    proxy between_us(cluster().folder());
    auto  options    = hasty(between_us.conninfo(), "network");
    options.patience = 500ms;  // an attempt whose bytes were swallowed ends then, and not before
    weir::postgres::store counters(options);
    const limits          all(counters);
    REQUIRE(comes_back(all.closed));
    const auto before = descriptors(), threads_before = tasks();
    for (const auto& [name, begin, outage] : faults) {
        INFO(name);
        (void)hasty("");  // nothing was heard
        const auto connects = between_us.accepted().size();
        crowd      asks(all);
        std::this_thread::sleep_for(100ms);
        begin(between_us);
        const auto begun = clock::now();
        if (outage) std::this_thread::sleep_for(span() / 4);
        if (outage) CHECK(heard_so_far() == begin_of_outage);
        between_us.pass();
        const auto healed = clock::now();
        CHECK(comes_back(all.closed));
        const auto back = clock::now();
        std::this_thread::sleep_for(200ms);
        const auto told = asks.stop();
        judge("X5 " + name, told);
        std::printf("%-28s back %.0f ms after it was over\n", "", ms(recovered(told, healed)));
        CHECK(back - healed < 2s);
        CHECK(recovered(told, healed) < 2s);
        CHECK(between_us.accepted().size() >= connects + 2);  // no connection was used again
        if (outage) {
            CHECK(share_authoritative(between(told, begun + 200ms, healed)) < 0.01);
            judge_outage(all.closed);
        }
        CHECK(between_us.connections() == 2);
        CHECK(within(5s, [&] { return std::abs(descriptors() - before) <= 2; }));
    }
    CHECK(tasks() <= threads_before + 1);
    judge_connects(between_us.accepted());
}

TEST_CASE(
    "of 1000 asks that were cut mid-query none outlasts its deadline or leaves a descriptor (O36)",
    "[faults][O36]")
{
    constexpr std::size_t                               stores = 32, rounds = 32;
    proxy                                               between_us(cluster().folder());
    std::vector<std::unique_ptr<weir::postgres::store>> own;
    for (std::size_t n = 0; n < stores; ++n) {
        auto options        = hasty(between_us.conninfo(), "cut");
        options.connections = 1;
        own.push_back(std::make_unique<weir::postgres::store>(options));
    }
    const limiter marked("cut", ten, *own.front());
    const auto    key = marked.digest("mute");
    std::string   marker;
    for (const auto half : {key.high, key.low})
        for (int byte = 7; byte >= 0; --byte) marker += static_cast<char>(half >> (8 * byte));
    between_us.mute(marker);

    const auto                     before = descriptors();
    std::atomic<int>               missed = 0;
    std::vector<std::vector<told>> heard_by(stores);
    std::vector<std::thread>       crew;
    for (std::size_t n = 0; n < stores; ++n)
        crew.emplace_back([&, n] {
            const limiter limit("cut", ten, *own[n]);
            for (std::size_t round = 0; round < rounds; ++round) {
                missed += !within(20s, [&] { return limit.peek("all").basis == basis::counted; });
                const auto begun = clock::now();
                const auto made  = limit.admit("mute");
                heard_by[n].push_back({begun, clock::now() - begun, made, 0});
            }
        });
    for (auto& one : crew) one.join();
    CHECK(missed == 0);
    std::vector<told> all;
    for (const auto& some : heard_by) all.insert(all.end(), some.begin(), some.end());
    CHECK(all.size() == stores * rounds);
    judge_times("O36 cut mid-query", all);
    CHECK(share_authoritative(all) == 0);
    CHECK(between_us.accepted().size() >= stores * rounds);  // a connection each, none used again
    between_us.pass();
    for (auto& one : own) {
        const limiter limit("cut", ten, *one);
        CHECK(comes_back(limit));
    }
    const auto more = descriptors() - before;
    std::printf("%-28s %zu connections used up; descriptors %+td\n", "",
                between_us.accepted().size(), more);
    CHECK(within(5s, [&] { return std::abs(descriptors() - before) <= 2; }));
    const limiter limit("cut", ten, *own.front());
    CHECK(limit.peek("mute").left == 10);  // the asks never came to the server
}
