// SPDX-License-Identifier: BSL-1.0

// X19, O39: bytes that a user may send break no statement.

#include <string>
#include <string_view>
#include <vector>

#include "weir/admit_all.hpp"

#include "scene.hpp"

using namespace faults;

TEST_CASE("NUL, bad UTF-8, SQL and a MiB of anything are subjects like others, and no error of the "
          "server (X19, O39)",
          "[faults][X19][O39]")
{
    const scratch::server          own("postgres", "fbytes", no_fsync);
    const std::vector<std::string> subjects{std::string("a\0b", 3),
                                            "\xff\xfe",
                                            "\xed\xa0\x80",
                                            "'); DROP SCHEMA weir CASCADE; --",
                                            "$$ \\x00 %s {1,2}",
                                            std::string(1 << 20, 'a'),
                                            std::string(1 << 20, '\0'),
                                            ""};
    {
        auto options     = hasty(own.conninfo());
        options.deadline = 20s;
        weir::postgres::store counters(options);
        const limiter         ip("ip\0\xff'", ten, counters), user("user", ten, counters);
        for (const auto& who : subjects)
            for (std::uint64_t taken = 1; taken <= 11; ++taken) {
                const auto made = ip.admit(who);
                CHECK(made.basis == basis::counted);
                CHECK(bool(made) == (taken <= 10));
                CHECK(made.left == (taken <= 10 ? 10 - taken : 0));
                CHECK(weir::admit_all({user(who), user("all", {.cost = 0})}).basis ==
                      basis::counted);
            }
        CHECK(counters.digest(counters.enrol("ip", ten), subjects[5]) !=
              counters.digest(counters.enrol("ip", ten), subjects[6]));
        CHECK(ip.forget(subjects.front()));
        CHECK(ip.peek(subjects.front()).left == 10);
    }
    std::vector<std::string> errors;
    for (const auto& line : own.log_of("ERROR:"))
        if (line.find("\"weir.meta\" does not exist") == std::string::npos) errors.push_back(line);
    CHECK(errors == std::vector<std::string>{});
    CHECK(heard_so_far().empty());
}
