// SPDX-License-Identifier: BSL-1.0

// X18: forks, signals, and no descriptor left.

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "weir/admit_all.hpp"

#include "proxy.hpp"
#include "scene.hpp"

using namespace faults;

namespace {

double processor_ms()
{
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const auto of = [](const timeval& t) {
        return 1'000 * static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1'000;
    };
    return of(used.ru_utime) + of(used.ru_stime);
}

/// Signals all threads of this process but its own, again and again.
class storm {
public:
    storm()
    {
        struct sigaction ignored {};
        ignored.sa_handler = [](int) {};  // and without SA_RESTART
        sigaction(SIGUSR1, &ignored, nullptr);
        thread_ = std::thread([this] {
            const auto self = static_cast<int>(::syscall(SYS_gettid));
            while (!over_) {
                for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
                    const int id = std::stoi(task.path().filename());
                    if (id != self && ::syscall(SYS_tgkill, getpid(), id, SIGUSR1) == 0) ++sent_;
                }
                std::this_thread::sleep_for(500us);
            }
        });
    }
    ~storm()
    {
        over_ = true;
        thread_.join();
        std::signal(SIGUSR1, SIG_IGN);  // one may still be on its way
    }
    storm(const storm&)            = delete;
    storm& operator=(const storm&) = delete;

    [[nodiscard]] long sent() const { return sent_; }

private:
    std::atomic<bool> over_ = false;
    std::atomic<long> sent_ = 0;
    std::thread       thread_;
};

/// As few descriptors as these, and none of them free.
class no_descriptors {
public:
    explicit no_descriptors(rlim_t most)
    {
        getrlimit(RLIMIT_NOFILE, &before_);
        const rlimit fewer{.rlim_cur = most, .rlim_max = before_.rlim_max};
        setrlimit(RLIMIT_NOFILE, &fewer);
        for (int one = 0; (one = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;)
            taken_.push_back(one);
    }
    ~no_descriptors()
    {
        for (const int one : taken_) ::close(one);
        setrlimit(RLIMIT_NOFILE, &before_);
    }
    no_descriptors(const no_descriptors&)            = delete;
    no_descriptors& operator=(const no_descriptors&) = delete;

    [[nodiscard]] std::size_t taken() const { return taken_.size(); }

    /// Also what is closed from here on is not free.
    void for_good() const
    {
        const rlimit none{.rlim_cur = 4, .rlim_max = before_.rlim_max};
        setrlimit(RLIMIT_NOFILE, &none);
    }

private:
    rlimit           before_{};
    std::vector<int> taken_;
};

}  // namespace

TEST_CASE("a child of a fork is answered by the rule, at once, and its parent keeps its "
          "connections (X18)",
          "[faults][X18]")
{
    auto counters = std::make_unique<weir::postgres::store>(
        hasty(cluster().conninfo() + " application_name=weir_fork", "ffork"));
    const limits all(*counters);
    REQUIRE(comes_back(all.closed));
    scratch::session by(cluster().conninfo());
    const auto       sessions = [&] {
        std::string pids;
        for (const auto& row : by.must("SELECT pid FROM pg_stat_activity WHERE "
                                                   "application_name = 'weir_fork' ORDER BY pid")
                                   .rows)
            pids += row.at(0).value() + " ";
        return pids;
    };
    const auto before = sessions();
    for (int round = 0; round < 5; ++round) {
        const auto child = fork();
        if (child == 0) {
            const auto begun = clock::now();
            int        wrong = 0;
            for (int n = 0; n < 1'000; ++n) {
                wrong += all.closed.admit("a").basis != basis::store_unavailable;
                wrong += !all.open.admit("a");
                wrong += all.share.admit("a").basis != basis::local;
                wrong += bool(weir::admit_all({all.closed("a"), all.closed("b")}));
            }
            all.closed.admit_then("a", [&](const weir::decision& made) {
                wrong += made.basis != basis::store_unavailable;
            });
            counters.reset();
            wrong += clock::now() - begun > 1s;
            _exit(wrong == 0 ? 0 : 1);
        }
        int status = 0;
        REQUIRE(waitpid(child, &status, 0) == child);
        CHECK(status == 0);
        CHECK(all.closed.admit("parent " + std::to_string(round)).basis == basis::counted);
        CHECK(sessions() == before);
    }
    CHECK(heard_so_far().empty());
}

TEST_CASE("two thousand signals a second to every thread change nothing but the time (X18)",
          "[faults][X18]")
{
    proxy                 between_us(cluster().folder());
    weir::postgres::store counters(hasty(between_us.conninfo(), "fstorm"));
    const limits          all(counters);
    REQUIRE(comes_back(all.closed));
    const auto                before = descriptors();
    std::vector<faults::told> told;
    long                      sent = 0;
    {
        const storm signals;
        crowd       asks(all);
        std::this_thread::sleep_for(span() / 2);
        CHECK(heard_so_far().empty());
        between_us.drop(true, true);  // and while it waits for deadlines and new connections
        std::this_thread::sleep_for(500ms);
        between_us.pass();
        between_us.reset();
        CHECK(comes_back(all.closed));
        told = asks.stop();
        sent = signals.sent();
    }
    judge("X18 signals", told);
    std::printf("%-28s %ld signals\n", "", sent);
    CHECK(sent > 1'000);
    judge_outage(all.closed);
    CHECK(within(5s, [&] { return std::abs(descriptors() - before) <= 2; }));
}

TEST_CASE("without a descriptor left a store says so, tries without a busy loop, and is back once "
          "there are (X18)",
          "[faults][X18]")
{
    const auto            words = cluster().conninfo() + " application_name=weir_no_fd";
    scratch::session      by(cluster().conninfo());
    weir::postgres::store counters(hasty(words, "fnofd"));
    const limits          all(counters);
    REQUIRE(comes_back(all.closed));
    const auto before = descriptors();
    {
        const no_descriptors rest(32);
        REQUIRE(rest.taken() > 0);
        CHECK_THROWS_AS(weir::postgres::store(hasty(words, "fnofd")), weir::postgres::unreachable);
        CHECK(all.closed.admit("a").basis == basis::counted);  // what is open works

        int        told = 0;
        const auto note = [&](const weir::decision& made) {
            ++told;
            CHECK(made.basis == basis::store_unavailable);
            CHECK(!made);
        };
        if (!sanitized) {  // UBSan itself needs a descriptor to look at what is thrown inside
            all.closed.admit_then("b", note);  // no pipe for the thread that would call back
            CHECK(told == 1);
        }
        CHECK(all.closed.admit("c").basis == basis::counted);  // who waits is still served

        rest.for_good();
        by.must("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = "
                "'weir_no_fd'");
        CHECK(within(5s, [&] { return all.closed.admit("a").basis == basis::store_unavailable; }));
        CHECK(within(5s, [&] {
            return all.closed.admit("b").basis == basis::store_unavailable &&
                   heard_so_far() == begin_of_outage;
        }));
        const auto used  = processor_ms();
        const auto begun = clock::now();
        std::this_thread::sleep_for(span() / 2);
        const auto busy = (processor_ms() - used) / ms(clock::now() - begun);
        std::printf("%-28s busy for %.1f %% of the time\n", "X18 no descriptor", 100 * busy);
        CHECK(busy < 0.2);
    }
    CHECK(comes_back(all.closed));
    bool called = false;
    CHECK(within(5s, [&] {
        std::atomic<int> state = 0;
        all.closed.admit_then(
            "d", [&](const weir::decision& made) { state = made.basis == basis::counted ? 2 : 1; });
        while (state == 0) std::this_thread::yield();
        called = state == 2;
        return called;
    }));
    CHECK(within(5s, [&] { return std::abs(descriptors() - before) <= 2; }));
}
