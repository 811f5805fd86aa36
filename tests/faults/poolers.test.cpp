// SPDX-License-Identifier: BSL-1.0

// X8, O37: a pooler in each of its modes. max_prepared_statements is of pgbouncer 1.21 and later;
// where it is older the test is of mode alone.

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "weir/admit_all.hpp"

#include "scene.hpp"

using namespace faults;

namespace {

/// Whether the pooler knows of named statements.
bool keeps_statements()
{
    return std::system("PATH=$PATH:/usr/sbin; [ \"$(pgbouncer --version | sed -n "
                       "'s/PgBouncer 1\\.\\([0-9]*\\).*/\\1/p')\" -ge 21 ]") == 0;
}

void ask_through(const std::string& mode, const std::string& more, int times)
{
    const scratch::server own("postgres", "fpooled", no_fsync);
    const scratch::server pooler("pgbouncer", "fpooler",
                                 own.folder() + " pool_mode=" + mode + more);
    std::atomic<int>      admitted = 0, uncounted = 0;
    const auto            together = static_cast<std::uint64_t>(times) / 10, alone = 9 * together;
    {
        auto options     = hasty(pooler.conninfo());
        options.deadline = 20s;
        weir::postgres::store    counters(options);
        const weir::fixed_window wide{.limit = 9'000, .window = ten.window};
        const limiter            ip("ip", wide, counters), user("user", wide, counters);
        std::vector<std::thread> crew;
        for (std::size_t thread = 0; thread < threads; ++thread)
            crew.emplace_back([&, thread] {
                for (int n = 0; n < times / 8; ++n) {
                    const auto who = std::to_string((n + static_cast<int>(thread)) % 2);
                    const auto made =
                        n % 10 == 0 ? weir::admit_all({user("all"), ip("set")}) : ip.admit(who);
                    admitted += made && n % 10 != 0;
                    uncounted += made.basis != basis::counted;
                }
            });
        for (auto& one : crew) one.join();
        CHECK(ip.peek("0").left + ip.peek("1").left == 2 * wide.limit - alone);
        CHECK(user.peek("all").left == wide.limit - together);
        CHECK(ip.peek("set").left == wide.limit - together);
    }
    CHECK(uncounted == 0);
    CHECK(admitted == static_cast<int>(alone));
    for (const auto* const code : {"26000", "42P05", "08P01"}) CHECK(own.log_of(code).empty());
    CHECK(pooler.log_of("ERROR").empty());
    for (const auto& line : own.log_of("ERROR:"))
        CHECK(line.find("\"weir.meta\" does not exist") != std::string::npos);
}

}  // namespace

TEST_CASE("in pgbouncer's session, transaction (16000 asks) and statement modes alike all asks are "
          "exact (X8, O37)",
          "[faults][X8][O37]")
{
    for (const std::string mode : {"session", "transaction", "statement"}) {
        INFO(mode);
        ask_through(mode, "", mode == "transaction" ? 16'000 : 2'000);
    }
}

TEST_CASE("so they are with a pooler that keeps named statements or does not (O37)",
          "[faults][X8][O37]")
{
    if (!keeps_statements()) {
        SUCCEED("pgbouncer is older than 1.21: there is nothing to set");
        return;
    }
    for (const std::string many : {"0", "100"}) {
        INFO(many);
        ask_through("transaction", " max_prepared_statements=" + many, 16'000);
    }
}
