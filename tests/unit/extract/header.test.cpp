// SPDX-License-Identifier: BSL-1.0

#include "weir/extract/header.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "reference/table.hpp"

using weir::absence;
using weir::header;

namespace {

std::vector<weir::header_line> lines_of(const reference::row& row, std::size_t from)
{
    std::vector<weir::header_line> out;
    for (auto i = from; i < row.size(); ++i) {
        const std::string_view line  = row[i];
        const auto             colon = line.find(':');
        out.push_back({line.substr(0, colon), line.substr(colon + 1)});
    }
    return out;
}

}  // namespace

TEST_CASE("a header has the value that the rows say or the reason why it has none")
{
    for (const auto& row : reference::table("header.tsv", 5)) {
        INFO("row " << row[0]);
        const header source("X-Api-Key", {.ambiguous_is_missing = row[1] == "missing"});
        const auto   lines = lines_of(row, 4);
        const auto   found = source(weir::request(lines, {}));
        CHECK((found ? "-" : name(*found.why())) == row[2]);
        CHECK(found.bytes() == (found ? row[3] : ""));
    }
}

TEST_CASE("a header is found by any spelling of its name that differs in case only")
{
    const weir::header_line lines[] = {{"x-api-key", "k"}};
    CHECK(header("X-API-Key")(weir::request(lines, {})).bytes() == "k");
    CHECK_FALSE(header("X_Api_Key")(weir::request(lines, {})));
    CHECK(header("X-API-Key").name() == "X-API-Key");
}

TEST_CASE("the value of a header may have 8192 bytes and not one more")
{
    const std::string       fits(8192, 'k'), longer(8193, 'k');
    const weir::header_line good[] = {{"K", fits}}, bad[] = {{"K", longer}};
    CHECK(header("K")(weir::request(good, {})).bytes().data() == fits.data());
    CHECK(header("K")(weir::request(bad, {})).why() == absence::too_long);
}

TEST_CASE("100000 lines that are equal cost no more than reading them")
{
    std::vector<weir::header_line> lines(100'000, {"K", "the same value"});
    const header                   source("K");
    CHECK(source(weir::request(lines, {})).bytes() == "the same value");
    lines.back().value = "another value!";
    CHECK(source(weir::request(lines, {})).why() == absence::ambiguous);
}

TEST_CASE("a header without a name that can be sent is refused when it is made")
{
    for (const auto* bad : {"", "X Api", "X-Api-Key:", "X-\r\nKey", "\xC3\xA9", " K"})
        CHECK_THROWS_AS(header(bad), std::invalid_argument);
    CHECK_NOTHROW(header("!#$%&'*+-.^_`|~09azAZ"));
}
