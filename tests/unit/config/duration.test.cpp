// SPDX-License-Identifier: BSL-1.0

#include "weir/config/duration.hpp"

#include "catch.hpp"
#include "reference/table.hpp"

#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

using namespace std::chrono_literals;
using weir::config::duration_fault;
using weir::config::duration_text;
using weir::config::parse_duration;

TEST_CASE("O27: a duration is read in full or refused with what is wrong", "[duration]")
{
    for (const auto& row : reference::table("durations.tsv", 3)) {
        INFO(row[0] << ": " << row[1]);
        REQUIRE(row[1].size() >= 2);
        const auto text = std::string_view(row[1]).substr(1, row[1].size() - 2);
        const auto read = parse_duration(text);
        if (row[2].find_first_not_of("0123456789") == std::string::npos) {
            REQUIRE(read);
            CHECK(std::to_string(read->count()) == row[2]);
            CHECK(duration_fault(text).empty());
        } else {
            CHECK_FALSE(read);
            CHECK(duration_fault(text) == row[2]);
        }
    }
    CHECK_FALSE(parse_duration(std::string_view("1s\0", 3)));
}

TEST_CASE("the text of a duration is read back as the same duration", "[duration]")
{
    CHECK(duration_text(5400s) == "1h30m");
    CHECK(duration_text(1500ms) == "1s500ms");
    CHECK(duration_text(0s) == "0s");
    CHECK(duration_text(-1s) == "0s");

    std::mt19937_64 random(27);
    for (int i = 0; i < 10'000; ++i) {
        const auto ticks = static_cast<std::int64_t>(random() >> (1 + random() % 60));
        const auto text  = duration_text(weir::duration(ticks));
        INFO(text);
        CHECK(parse_duration(text) == weir::duration(ticks));
    }
}
