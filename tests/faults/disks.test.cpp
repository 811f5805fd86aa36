// SPDX-License-Identifier: BSL-1.0

// X10: the server's disk is full.

#include <sys/mount.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "scene.hpp"

using namespace faults;

namespace {

/// A disk in memory, where the machine lets us have one.
class small_disk {
public:
    small_disk(const std::string& at, int megabytes) : at_(at)
    {
        std::filesystem::create_directories(at);
        mounted_ = ::mount("none", at.c_str(), "tmpfs", 0, size_of(megabytes).c_str()) == 0;
        const auto command = "chown postgres '" + at + "' 2>/dev/null";
        if (mounted_) mounted_ = std::system(command.c_str()) == 0;
    }
    ~small_disk()
    {
        if (mounted_) ::umount2(at_.c_str(), MNT_DETACH);
        std::error_code ignored;
        std::filesystem::remove(at_, ignored);
    }
    small_disk(const small_disk&)            = delete;
    small_disk& operator=(const small_disk&) = delete;

    [[nodiscard]] bool there() const { return mounted_; }

    void grow(int megabytes) const
    {
        REQUIRE(::mount("none", at_.c_str(), "tmpfs", MS_REMOUNT, size_of(megabytes).c_str()) == 0);
    }

private:
    static std::string size_of(int megabytes) { return "size=" + std::to_string(megabytes) + "m"; }

    std::string at_;
    bool        mounted_ = false;
};

std::string folder_of(const std::string& name)
{
    return (std::filesystem::temp_directory_path() /
            ("weir-" + name + "-" + std::to_string(getpid())))
        .string();
}

/// False, with a word why, where no disk can be had.
bool usable(const small_disk& disk)
{
    if (!disk.there()) WARN("this user may not mount a file system: the disk was not filled");
    return disk.there();
}

}  // namespace

TEST_CASE("a table whose disk is full decides by the rule, half-spends nothing, and goes on once "
          "there is room (X10)",
          "[faults][X10]")
{
    const small_disk      disk(folder_of("fdisk"), 1);
    const scratch::server own("postgres", "fspace", no_fsync);
    if (!usable(disk)) {
        SUCCEED();
        return;
    }
    weir::postgres::store counters(hasty(own.conninfo()));
    scratch::session      by(own.conninfo());
    by.must("CREATE TABLESPACE small LOCATION '" + folder_of("fdisk") + "'");
    by.must("ALTER TABLE weir.counters SET TABLESPACE small");
    by.must("ALTER INDEX weir.counters_pkey SET TABLESPACE small");
    const limits all(counters);
    REQUIRE(comes_back(all.closed));

    // Every subject is a new one, until there is no room for more.
    std::atomic<std::uint64_t>     next = 0;
    std::atomic<bool>              over = false;
    std::vector<std::vector<told>> by_thread(threads);
    std::vector<std::thread>       crew;
    for (auto& mine : by_thread)
        crew.emplace_back([&] {
            while (!over) {
                const auto who   = next++;
                const auto begun = clock::now();
                const auto made  = all[who].admit("new " + std::to_string(who));
                mine.push_back({begun, clock::now() - begun, made, who});
                if (!mine.back().authoritative()) std::this_thread::sleep_for(1ms);
            }
        });
    CHECK(within(60s, [&] { return heard_so_far() == begin_of_outage; }));
    const auto full = clock::now();
    std::this_thread::sleep_for(span() / 2);
    CHECK(own.log_of("No space left on device").size() > 0);
    disk.grow(16);
    const auto freed = clock::now();
    CHECK(within(10s, [&] { return heard_so_far().size() > 1; }));
    const auto back = clock::now();
    std::this_thread::sleep_for(200ms);
    over = true;
    for (auto& one : crew) one.join();

    std::vector<told> told;
    for (const auto& some : by_thread) told.insert(told.end(), some.begin(), some.end());
    judge("X10 table's disk full", told);
    CHECK(share_authoritative(between(told, full + 100ms, freed)) < 0.1);
    CHECK(back - freed < 2s);
    std::printf("%-28s back %.0f ms after there was room\n", "", ms(back - freed));
    std::size_t wrong  = 0,
                looked = 0;  // of what was not counted nothing is there, of the rest one unit
    for (std::size_t n = 0; n < told.size(); n += 1 + told.size() / 2'000, ++looked) {
        const auto& one = told[n];
        const auto  rows =
            by.must("SELECT count(*) FROM weir.counters WHERE key = $1 AND second = 1",
                    {uuid_of(all[one.subject].digest("new " + std::to_string(one.subject)))})
                .number();
        // Ended windows are swept only after a minute. Unanswered in time is counted or not.
        if (one.authoritative() ? rows != 1 : one.took < 40ms && rows != 0) ++wrong;
    }
    CHECK(looked > 500);
    CHECK(wrong == 0);
}

TEST_CASE("a server that stops because its log's disk is full is an outage, and over once there is "
          "room (X10)",
          "[faults][X10]")
{
    const small_disk      disk(folder_of("fwal"), 40);
    const scratch::server own("postgres", "flog",
                              no_fsync + "wal_recycle=off min_wal_size=32MB "
                                         "max_wal_size=32MB restart_after_crash=on");
    if (!usable(disk)) {
        SUCCEED();
        return;
    }
    {
        weir::postgres::store made(hasty(own.conninfo()));
    }
    own.stop();
    const auto log = own.folder() + "/data/pg_wal", there = folder_of("fwal") + "/pg_wal";
    const auto move = "cp -a '" + log + "' '" + there + "' && rm -rf '" + log + "' && ln -s '" +
                      there + "' '" + log + "' && chown -h postgres '" + log + "'";
    REQUIRE(std::system(move.c_str()) == 0);
    own.go_on();
    weir::postgres::store counters(hasty(own.conninfo()));
    const limits          all(counters);
    REQUIRE(comes_back(all.closed));
    const auto filler = folder_of("fwal") + "/filler";
    {
        std::ofstream     file(filler);
        const std::string some(1 << 16, 'x');
        while (file.write(some.data(), static_cast<std::streamsize>(some.size())).flush()) {}
    }
    crowd asks(all);
    try {
        scratch::session by(own.conninfo());
        for (int n = 0;
             n < 10 && by.run("SELECT pg_switch_wal(); SELECT pg_logical_emit_message(false, 'x', "
                              "repeat('x', 1000000))")
                           .error.empty();
             ++n) {}
    } catch (const std::runtime_error&) {  // it is gone
    }
    CHECK(within(20s, [&] { return heard_so_far() == begin_of_outage; }));
    const auto down = clock::now();
    std::this_thread::sleep_for(span() / 2);
    std::filesystem::remove(filler);
    disk.grow(200);
    const auto freed = clock::now();
    if (!std::filesystem::exists(own.folder() + "/data/postmaster.pid")) own.go_on();  // it gave up
    CHECK(comes_back(all.closed));
    const auto back = clock::now();
    const auto told = asks.stop();
    judge("X10 log's disk full", told);
    std::printf("%-28s back %.0f ms after there was room\n", "", ms(back - freed));
    CHECK(share_authoritative(between(told, down + 300ms, freed)) == 0);
    CHECK(own.log_of("PANIC").size() > 0);
    judge_outage(all.closed);
}
