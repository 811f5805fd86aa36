// SPDX-License-Identifier: BSL-1.0

#include "weir/extract/edge_text.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"

namespace {

using lines = std::vector<weir::header_line>;

std::string read(const lines& all)
{
    const weir::edge_text source({.edge_replaces_headers = true});
    return source(weir::request(all, {}));
}

}  // namespace

TEST_CASE(
    "X-Real-IP comes before X-Forwarded-For, whose first entry stands in where it is blank (L02)",
    "[edge_text]")
{
    CHECK(read({{"X-Forwarded-For", "198.51.100.7"}, {"x-real-ip", "203.0.113.9"}}) ==
          "203.0.113.9");
    CHECK(read({{"X-Real-IP", "  "}, {"X-Forwarded-For", " 198.51.100.7 , 10.0.0.1"}}) ==
          "198.51.100.7");
    CHECK(read({{"X-Forwarded-For", "::ffff:198.51.100.7"}}) == "::ffff:198.51.100.7");
}

TEST_CASE("without either header all clients are one, \"unknown\" (L02)", "[edge_text]")
{
    CHECK(read({}) == "unknown");
    CHECK(read({{"X-Real-IP", ""}, {"X-Forwarded-For", ""}}) == "unknown");
    CHECK(read({{"True-Client-IP", "198.51.100.7"}, {"Forwarded", "for=198.51.100.7"}}) ==
          "unknown");
}

TEST_CASE("the text is cut to 60 bytes without an ellipsis (L02)", "[edge_text]")
{
    const std::string digits(70, '7');
    CHECK(read({{"X-Real-IP", digits}}) == std::string(60, '7'));
    CHECK(read({{"X-Real-IP", digits.substr(10)}}) == std::string(60, '7'));
}

TEST_CASE("nobody believes the first entry without saying that the edge replaces it (L03)",
          "[edge_text]")
{
    CHECK_THROWS_AS(weir::edge_text({}), std::invalid_argument);
}
