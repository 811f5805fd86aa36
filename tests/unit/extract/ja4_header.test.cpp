// SPDX-License-Identifier: BSL-1.0

#include "weir/extract/ja4_header.hpp"

#include <array>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "weir/extract/missing_key.hpp"

using weir::absence;

namespace {

const std::string good = "t13d1516h2_8daaf6152771_e5627efa2ab1";

weir::field found(const weir::ja4_header& fingerprint, const std::string& peer,
                  const std::vector<weir::header_line>& lines)
{
    return fingerprint(weir::request(lines, {.peer = weir::peer::parse(peer)}));
}

}  // namespace

TEST_CASE("a fingerprint is taken from a trusted proxy and from nobody else", "[ja4_header]")
{
    const weir::ja4_header fingerprint({.trusted = {"10.0.0.0/8", "2001:db8::1"}});
    for (const std::string peer : {"10.1.2.3", "10.1.2.3:4711", "::ffff:10.1.2.3", "2001:db8::1"})
        CHECK(found(fingerprint, peer, {{"x-ja4", good}}).bytes() == good);
    for (const std::string peer : {"203.0.113.7", "11.0.0.1", "2001:db8::2", "unix", "", "0.0.0.0"})
        CHECK(found(fingerprint, peer, {{"x-ja4", good}}).why() == absence::missing);
}

TEST_CASE("by default nobody is believed, and a Unix socket and private networks only if named",
          "[ja4_header]")
{
    CHECK(found(weir::ja4_header({}), "127.0.0.1", {{"X-JA4", good}}).why() == absence::missing);
    const weir::ja4_header fingerprint({.trusted = {"unix", "private"}});
    CHECK(found(fingerprint, "unix:", {{"X-JA4", good}}));
    CHECK(found(fingerprint, "192.168.1.1", {{"X-JA4", good}}));
    CHECK_FALSE(found(fingerprint, "203.0.113.7", {{"X-JA4", good}}));
}

TEST_CASE("what a trusted proxy sends must have the form of a fingerprint, once", "[ja4_header]")
{
    const weir::ja4_header fingerprint({.trusted = {"10.0.0.1"}, .header = "JA4"});
    const auto             why = [&](const std::vector<weir::header_line>& lines) {
        return found(fingerprint, "10.0.0.1", lines).why();
    };
    CHECK_FALSE(why({{"JA4", " " + good + "\t"}}));
    CHECK_FALSE(why({{"JA4", good}, {"ja4", good}}));
    CHECK(why({}) == absence::missing);
    CHECK(why({{"JA4", ""}}) == absence::missing);
    CHECK(why({{"X-JA4", good}}) == absence::missing);
    CHECK(why({{"JA4", "chromium"}}) == absence::malformed);
    CHECK(why({{"JA4", good + ", " + good}}) == absence::malformed);
    CHECK(why({{"JA4", good}, {"JA4", "t13d0000h2_000000000000_000000000000"}}) ==
          absence::ambiguous);
    CHECK(step_for(found(fingerprint, "10.0.0.1", {{"JA4", "x"}}), weir::missing_key::pass) ==
          weir::key_step::reject);
}

TEST_CASE("a wrong entry and a wrong name are told with their place", "[ja4_header]")
{
    const auto told = [](const weir::ja4_header_options& options) -> std::string {
        try {
            (void)weir::ja4_header(options);
        } catch (const std::invalid_argument& wrong) {
            return wrong.what();
        }
        return "nothing";
    };
    const auto entry = told({.trusted = {"10.0.0.1", "10.0.0.0/33"}});
    CHECK(entry.find("ja4_header: trusted[1] is \"10.0.0.0/33\"") != entry.npos);
    CHECK(told({.header = "X JA4"}).find("header") != std::string::npos);
    CHECK(told({.trusted = {"unix"}}) == "nothing");
}
