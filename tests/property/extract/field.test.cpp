// SPDX-License-Identifier: BSL-1.0

#include "weir/extract/field.hpp"

#include <array>
#include <map>
#include <string>

#include "catch.hpp"
#include "reference/field_case.hpp"
#include "reference/random.hpp"

namespace {

/// Up to `most` of the pieces, one after the other, and now and then any byte.
template <std::size_t Count>
std::string draw(reference::generator& random, const std::array<const char*, Count>& pieces,
                 int most)
{
    std::string out;
    for (auto left = reference::random_number(random, 0, most); left > 0; --left) {
        if (reference::chance(random, 3)) out += static_cast<char>(random() % 256);
        out += pieces[random() % Count];
    }
    return out;
}

constexpr std::array header_pieces = {
    "x-api-key:", "X-Api-Key: k1", "X_Api_Key:", "\x1f", "\x1f", "\x1fk1", "k1", " ",
    "\t",         "k2",            "\r",         "\n",   ",",    "\xC3\xA9"};
constexpr std::array cookie_pieces = {"id=",  "id",   ";",    "; ",       "=", " ", "\t", "1", "2",
                                      "ID=3", "\x1f", "\x1f", "Cookie: ", "x=y; ", "\"", "\r", ","};
constexpr std::array query_pieces  = {"?",   "id+1=", "id%201=", "i%641=", "&", "&",   "=", "#",
                                      "%",   "%2",    "%25",     "%zz",    "+", "%2B", ";", "v",
                                      "%00", "id 1=", "?id+1=",  "?id%201="};

/// Runs `wrong` on drawn input; the draw is worth little if it seldom finds a value.
template <std::size_t Count, class Wrong>
void check(std::uint64_t seed, const std::array<const char*, Count>& pieces, const Wrong& wrong)
{
    reference::generator random(seed);
    const auto           steps = reference::steps(60'000);
    for (std::uint64_t step = 0; step < steps; ++step) {
        const bool flag = reference::chance(random, 50);
        const auto text = draw(random, pieces, 14);
        const auto why  = wrong(flag, text);
        if (!why.empty()) FAIL("step " << step << ", {" << text << "}: " << why);
    }
    CHECK(steps > 0);
}

}  // namespace

TEST_CASE("a header has the value of the slow reference on 60000 drawn requests")
{
    check(20261201, header_pieces, reference::wrong_header);
}

TEST_CASE("a cookie has the value of the slow reference on 60000 drawn requests")
{
    check(20261202, cookie_pieces, reference::wrong_cookie);
}

TEST_CASE("a query parameter has the value of the slow reference on 60000 drawn targets")
{
    check(20261203, query_pieces, reference::wrong_query);
}

TEST_CASE("the drawn requests hold a value and each reason for none often enough to matter")
{
    std::map<std::string, int> header, cookie, query;
    reference::generator       random(20261204);
    for (int i = 0; i < 20'000; ++i) {
        const auto lines = reference::lines_from(draw(random, header_pieces, 14), "X-Api-Key");
        ++header[reference::header_field(reference::values_of(lines, "x-api-key"), false).why];
        const auto jar = reference::lines_from(draw(random, cookie_pieces, 14), "Cookie");
        ++cookie[reference::cookie_field(reference::values_of(jar, "cookie"), "id", false).why];
        ++query[reference::query_field(draw(random, query_pieces, 14), "id 1", true).why];
    }
    for (const auto* why : {"", "missing", "ambiguous", "malformed"}) {
        INFO('{' << why << '}');
        CHECK(header[why] > 50);
        CHECK(cookie[why] > 50);
    }
    CHECK(query[""] > 2'000);
    CHECK(query["missing"] > 2'000);
}
