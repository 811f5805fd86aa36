// SPDX-License-Identifier: BSL-1.0

// X13: the clock of a process that asks is wrong. Only the server's decides.

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "weir/admit_all.hpp"

#include "proxy.hpp"
#include "scene.hpp"

using namespace faults;

namespace {

/// Of the package faketime; empty if it is not installed.
std::string clock_shifter()
{
    for (const auto& entry : std::filesystem::recursive_directory_iterator(
             "/usr/lib", std::filesystem::directory_options::skip_permission_denied))
        if (entry.path().filename() == "libfaketimeMT.so.1") return entry.path();
    return "";
}

/// Nanoseconds of 1970 in eight bytes, the highest first, near `at`.
std::size_t instants_in(const std::string& bytes, std::int64_t at)
{
    const std::int64_t near  = std::chrono::nanoseconds(10min).count();
    std::size_t        found = 0;
    for (std::size_t n = 0; n + 8 <= bytes.size(); ++n) {
        std::uint64_t number = 0;
        for (std::size_t byte = 0; byte < 8; ++byte)
            number = number << 8 | static_cast<unsigned char>(bytes[n + byte]);
        const auto instant = static_cast<std::int64_t>(number);
        found += instant > at - near && instant < at + near;
    }
    return found;
}

}  // namespace

TEST_CASE("no instant of the caller's goes to the server, but the one until which something may be "
          "given back (X13)",
          "[faults][X13]")
{
    proxy between_us(cluster().folder());
    between_us.record();
    weir::postgres::store counters(hasty(between_us.conninfo(), "fclock"));
    const limits          all(counters);
    REQUIRE(comes_back(all.closed));
    const weir::limiter sliding("sliding", weir::sliding_window{.limit = 5, .window = 1min},
                                counters);
    const weir::limiter bucket("bucket", weir::gcra{.limit = 5, .window = 1min}, counters);
    weir::decision      last;
    for (int n = 0; n < 50; ++n) {
        last = all.closed.admit(std::to_string(n));
        (void)sliding.admit("a");
        (void)bucket.admit("a");
        (void)weir::admit_all({all.closed("a"), sliding("a"), bucket("b")});
        all.open.charge("a", {.cost = 2});
        (void)all.open.peek("a");
        (void)all.open.forget("a");
    }
    const auto now = std::chrono::nanoseconds(weir::now().time_since_epoch()).count();
    CHECK(between_us.recorded().size() > 10'000);
    CHECK(instants_in(between_us.recorded(), now) == 0);
    all.closed.give_back("49", last);
    CHECK(instants_in(between_us.recorded(), now) == 1);  // and they are seen where they are
}

// A process of the test below, under another clock: asks six times and tells what it was told.
TEST_CASE("asks under another clock", "[.][shifted]")
{
    const char* const server = std::getenv("WEIR_FAULT_SERVER");
    REQUIRE(server != nullptr);
    auto options     = hasty(server, "fshifted");
    options.deadline = 20s;
    weir::postgres::store counters(options);
    const limiter         hour("hour", {.limit = 10, .window = 24h}, counters);
    for (int n = 0; n < 6; ++n) {
        const auto made = hour.admit("all");
        std::printf("told: %d %lld %lld %lld\n", bool(made),
                    static_cast<long long>(made.at.time_since_epoch().count() / 1'000'000'000),
                    static_cast<long long>(made.retry_after->count() / 1'000'000'000),
                    static_cast<long long>(std::time(nullptr)));
    }
    SUCCEED();
}

TEST_CASE(
    "processes whose clocks are five minutes off share one window, and know when it ends (X13)",
    "[faults][X13]")
{
    const auto shifter = clock_shifter();
    if (shifter.empty()) {
        WARN("faketime is not installed: no clock was shifted");
        SUCCEED();
        return;
    }
    (void)hasty("");
    {
        auto                  options = hasty(cluster().conninfo(), "fshifted");
        weir::postgres::store made(options);
    }
    int admitted = 0, told = 0;
    for (const std::string shift : {"-5m", "+5m", "-5m x2"}) {  // the last one runs twice as fast
        const auto command = "WEIR_FAULT_SERVER='" + cluster().conninfo() +
                             "' LD_PRELOAD=" + shifter + " FAKETIME='" + shift +
                             "' FAKETIME_DONT_FAKE_MONOTONIC=1 "
                             "ASAN_OPTIONS=verify_asan_link_order=0 '" +
                             std::filesystem::read_symlink("/proc/self/exe").string() +
                             "' '[shifted]' 2>&1";
        auto* const process = popen(command.c_str(), "r");
        REQUIRE(process != nullptr);
        char        line[256];
        std::string all;
        while (std::fgets(line, sizeof line, process) != nullptr) {
            all += line;
            int       yes = 0;
            long long at = 0, wait = 0, there = 0;
            if (std::sscanf(line, "told: %d %lld %lld %lld", &yes, &at, &wait, &there) != 4)
                continue;
            const auto now = static_cast<long long>(std::time(nullptr));
            ++told, admitted += yes;
            CHECK(std::abs(there - now) > 200);  // it was shifted
            CHECK(std::abs(at - now) <= 5);
            if (!yes) CHECK(std::abs(wait - (86'400 - now % 86'400)) <= 5);
        }
        INFO(all);
        CHECK(pclose(process) == 0);
    }
    CHECK(told == 18);
    CHECK(admitted == 10);
}
