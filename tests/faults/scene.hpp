// SPDX-License-Identifier: BSL-1.0
#pragma once

// What the tests of faults share: servers of their own, a crowd that asks all the time, and the
// judgement of what it was told.
//
// WEIR_FAULT_SECONDS is how long a fault lasts; 2 unless it is set, 60 for a thorough run.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "weir/decision.hpp"
#include "weir/limiter.hpp"
#include "weir/postgres/store.hpp"
#include "weir/warning.hpp"

#include "catch.hpp"
#include "servers.hpp"
#include "session.hpp"

namespace faults {

using namespace std::chrono_literals;
using clock   = std::chrono::steady_clock;
using moment  = clock::time_point;
using limiter = weir::limiter<weir::fixed_window, weir::postgres::store>;
using weir::basis;
using weir::warning;

inline constexpr auto        deadline = 50ms;
inline constexpr std::size_t threads  = 8;

/// A window that no run sees the end of.
inline constexpr weir::fixed_window ten{.limit = 10, .window = std::chrono::years(40)};

/// What the crowd asks for: limits small enough that most is refused.
inline constexpr weir::fixed_window few{.limit = 20, .window = 200ms};
inline constexpr std::uint32_t      sharers = 4;

inline const std::string secret   = "weir-key-secret-0123456789abcdef";
inline const std::string no_fsync = "fsync=off synchronous_commit=off ";

/// Words of a session follow those of `cluster()`, which here are none.
inline const int no_cluster = setenv("WEIR_POSTGRES", " ", 1);

/// The server of all tests that leave it as it was.
inline const scratch::server& cluster()
{
    static const scratch::server own("postgres", "faults", no_fsync + "max_connections=100");
    return own;
}

inline clock::duration span()
{
    const char* const wanted = std::getenv("WEIR_FAULT_SECONDS");
    return std::chrono::seconds(wanted == nullptr ? 2 : std::max(std::atoi(wanted), 1));
}

inline double ms(clock::duration length)
{
    return std::chrono::duration<double, std::milli>(length).count();
}

/// True as soon as `claim()` is; false if it is not by `limit`.
template <class Claim>
bool within(clock::duration limit, Claim&& claim)
{
    const auto until = clock::now() + limit;
    while (!claim()) {
        if (clock::now() > until) return false;
        std::this_thread::sleep_for(1ms);
    }
    return true;
}

// -- what a process has, and was told ----------------------------------------------------------

inline std::ptrdiff_t entries_of(const char* folder)
{
    namespace fs = std::filesystem;
    return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}
inline std::ptrdiff_t descriptors() { return entries_of("/proc/self/fd"); }
inline std::ptrdiff_t tasks() { return entries_of("/proc/self/task"); }

inline std::mutex           hearing;
inline std::vector<warning> heard;

inline void hear(warning of)
{
    const std::lock_guard turn(hearing);
    heard.push_back(of);
}
inline std::vector<warning> heard_so_far()
{
    const std::lock_guard turn(hearing);
    return heard;
}
inline const std::vector<warning> begin_of_outage{warning::store_away};

/// Options of a store with the default deadline, that asks for everything.
inline weir::postgres::store_options hasty(const std::string& conninfo,
                                           const std::string& schema = "weir")
{
    {
        const std::lock_guard turn(hearing);
        heard.clear();
    }
    return {.conninfo     = conninfo,
            .key_secret   = secret,
            .deadline     = deadline,
            .schema       = schema,
            .memo_longest = {},
            .warn         = &hear};
}

/// A key as SQL writes a uuid.
inline std::string uuid_of(const weir::key& of)
{
    char text[33];
    std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(of.high),
                  static_cast<unsigned long long>(of.low));
    return text;
}

// -- the crowd ---------------------------------------------------------------------------------

struct told {
    moment          begun   = {};
    clock::duration took    = {};
    weir::decision  made    = {};
    std::uint64_t   subject = 0;

    [[nodiscard]] bool authoritative() const { return made.basis <= basis::remembered; }
};

/// One limit under each outage rule.
struct limits {
    explicit limits(weir::postgres::store& counters, const weir::fixed_window& limit = few)
        : closed("closed", limit, counters), open("open", limit, counters, {weir::fail_open}),
          share("share", limit, counters, {weir::local(sharers)})
    {
    }
    const limiter& operator[](std::size_t n) const
    {
        return n % 3 == 0 ? closed : n % 3 == 1 ? open : share;
    }
    limiter closed, open, share;
};

/// Threads that ask, each with a pause of a millisecond between two questions, until they are
/// stopped.
class crowd {
public:
    explicit crowd(const limits& of, std::size_t many = threads, std::uint64_t subjects = 8)
        : made_(many)
    {
        for (std::size_t thread = 0; thread < many; ++thread)
            threads_.emplace_back([this, thread, subjects, &of] {
                for (auto drawn = thread; !over_;
                     drawn      = drawn * 6'364'136'223'846'793'005 + 1'442'695) {
                    ask(of[drawn >> 40], made_[thread], (drawn >> 33) % subjects);
                    std::this_thread::sleep_for(1ms);
                }
            });
    }
    ~crowd() { (void)stop(); }
    crowd(const crowd&)            = delete;
    crowd& operator=(const crowd&) = delete;

    /// All that was told, thread by thread, once.
    std::vector<told> stop()
    {
        over_ = true;
        for (auto& one : threads_) one.join();
        threads_.clear();
        std::vector<told> all;
        for (auto& one : made_) all.insert(all.end(), one.begin(), one.end());
        return all;
    }

private:
    static void ask(const limiter& on, std::deque<told>& to, std::uint64_t subject)
    {
        const auto begun = clock::now();
        const auto made  = on.admit(std::to_string(subject));
        to.push_back({begun, clock::now() - begun, made, subject});
    }

    std::vector<std::deque<told>> made_;
    std::atomic<bool>             over_ = false;
    std::vector<std::thread>      threads_;
};

// -- the judgement -----------------------------------------------------------------------------

/// Those that begun and ended in [from, until): one that was under way when a fault ended is of
/// neither time.
inline std::vector<told> between(const std::vector<told>& all, moment from, moment until)
{
    std::vector<told> some;
    std::ranges::copy_if(all, std::back_inserter(some), [&](const told& one) {
        return one.begun >= from && one.begun + one.took < until;
    });
    return some;
}

inline double share_authoritative(const std::vector<told>& all)
{
    const auto count = std::ranges::count_if(all, &told::authoritative);
    return all.empty() ? 0 : static_cast<double>(count) / static_cast<double>(all.size());
}

/// Decisions that are not what their rule says. `closed` refuses and knows no wait that would help.
inline std::ptrdiff_t against_their_rule(const std::vector<told>& all)
{
    return std::ranges::count_if(all, [](const told& one) {
        if (one.authoritative()) return false;
        const auto& made = one.made;
        if (made.limiter == "share") return made.basis != basis::local;
        if (made.basis != basis::store_unavailable) return true;
        return made.limiter == "open" ? !made : made || made.retry_after;
    });
}

/// Windows of a subject in which more was admitted than may be: by counters of the store the limit,
/// by those of this process its share.
inline std::ptrdiff_t windows_over(const std::vector<told>& all, const weir::fixed_window& limit)
{
    std::map<std::tuple<std::string_view, basis, std::uint64_t, std::int64_t>, std::uint64_t> sums;
    for (const auto& [begun, took, made, subject] : all)
        if (made && made.basis != basis::store_unavailable)
            ++sums[{made.limiter, made.basis, subject, made.at.time_since_epoch() / limit.window}];
    return std::ranges::count_if(sums, [&](const auto& one) {
        return one.second >
               (std::get<1>(one.first) == basis::local ? limit.limit / sharers : limit.limit);
    });
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool sanitized = true;
#elif defined(__has_feature)
inline constexpr bool sanitized =
    __has_feature(thread_sanitizer) || __has_feature(address_sanitizer);
#else
inline constexpr bool sanitized = false;
#endif

/// What a machine that others use adds, which is seen in thousandths only; and what sanitizers do.
/// WEIR_QUIET=1 says that nobody uses it, and then the promise is judged as it stands: p99.9.
inline const auto     slack  = std::getenv("WEIR_QUIET") != nullptr ? 0ms : 30ms;
inline constexpr auto slowed = sanitized ? 50ms : 0ms;

/// Prints how long decisions took, and judges it.
inline void judge_times(const std::string& of, std::vector<told> all,
                        clock::duration allowed = deadline)
{
    REQUIRE(all.size() >= 50);
    std::ranges::sort(all, {}, &told::took);
    const auto at = [&](double share) {
        return all[static_cast<std::size_t>(share * static_cast<double>(all.size() - 1))].took;
    };
    std::printf("%-28s %6zu decisions, %5.1f %% by the store; ms: p50 %.2f p99 %.1f p99.9 %.1f "
                "max %.1f\n",
                of.c_str(), all.size(), 100 * share_authoritative(all), ms(at(0.5)), ms(at(0.99)),
                ms(at(0.999)), ms(all.back().took));
    std::fflush(stdout);
    CHECK(at(0.99) <= allowed + 10ms + slowed);
    CHECK(at(0.999) <= allowed + 10ms + slack + slowed);
}

/// What holds in every fault. `tables` of counters were there, one after the other, of which none
/// knows what the last one counted.
inline void judge(const std::string& of, const std::vector<told>& all, std::uint64_t tables = 1)
{
    INFO(of);
    judge_times(of, all);
    CHECK(against_their_rule(all) == 0);
    CHECK(windows_over(all, {.limit = tables * few.limit, .window = few.window}) == 0);
}

/// How long after `since` the last decision was made that was not the store's.
inline clock::duration recovered(const std::vector<told>& all, moment since)
{
    auto last = since;
    for (const auto& one : all)
        if (!one.authoritative()) last = std::max(last, one.begun + one.took);
    return last - since;
}

/// At most ten connections in any second, and never in step.
inline void judge_connects(const std::vector<moment>& at)
{
    std::size_t most = 0;
    for (const auto& first : at)
        most = std::max(most, static_cast<std::size_t>(std::ranges::count_if(at, [&](moment one) {
                            return one >= first && one < first + 1s;
                        })));
    std::printf("%-28s %6zu connects, at most %zu in a second\n", "", at.size(), most);
    CHECK(most <= 10);
}

/// Asks until the store has answered on all connections.
inline bool comes_back(const limiter& limit, clock::duration patience = 20s)
{
    return within(patience, [&] {
        int counted = 0;
        for (int n = 0; n < 32; ++n)
            counted += limit.peek(std::to_string(n)).basis == basis::counted;
        return counted == 32;
    });
}

/// What was told of an outage, once it is over: that it began, and that it ended. On a busy machine
/// the first statements of a new connection may be too late for five callers in a row, which is
/// another outage of half a second: it is printed, and more than one is a failure.
inline void judge_outage(const limiter& limit)
{
    CHECK(within(20s, [&] { return comes_back(limit) && heard_so_far().size() % 2 == 0; }));
    const auto all = heard_so_far();
    for (std::size_t n = 0; n < all.size(); ++n)
        CHECK(all[n] == (n % 2 == 0 ? warning::store_away : warning::store_back));
    CHECK(all.size() >= 2);
    CHECK(all.size() <= 4);
    if (all.size() > 2) std::printf("%-28s a second outage followed: is the machine busy?\n", "");
}

}  // namespace faults
