// SPDX-License-Identifier: BSL-1.0

#include "weir/config/environment.hpp"

#include "catch.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

using namespace std::chrono_literals;

namespace {

/// The block that a process would get.
template <std::size_t Count>
struct block {
    std::array<const char*, Count + 1> lines{};
    explicit block(const char* const (&given)[Count])
    {
        std::copy(given, given + Count, lines.begin());
    }
    operator const char* const*() const { return lines.data(); }
};

weir::environment empty() { return weir::environment(nullptr); }

}  // namespace

TEST_CASE("what is not set is the default, and no problem", "[environment]")
{
    auto from = empty();
    CHECK(from.flag("A", true));
    CHECK(from.integer("A", 7, 1, 9) == 7);
    CHECK(from.seconds("A", 60s, 1s, 3600s) == 60s);
    CHECK(from.text("A", "x") == "x");
    CHECK_FALSE(from.secret("A", 16));
    CHECK(from.one_of("A", "memory", {"memory", "database"}) == "memory");
    CHECK(from.ranges("A").empty());
    CHECK(from.listen("A", {.port = 8080}).port == 8080);
    CHECK(from.complaint().empty());
}

TEST_CASE("an empty value counts as unset", "[environment]")
{
    const block       given({"N=", "F=", "S=", "L="});
    weir::environment from(given);
    CHECK(from.integer("N", 7, 1, 9) == 7);
    CHECK(from.flag("F", true));
    CHECK_FALSE(from.secret("S", 16));
    CHECK(from.listen("L", {.port = 1}).port == 1);
    CHECK(from.complaint().empty());
}

TEST_CASE("a name is matched whole", "[environment]")
{
    const block       given({"LIMITS=5", "LIMI=6", "LIMIT"});
    weir::environment from(given);
    CHECK(from.integer("LIMIT", 7, 1, 9) == 7);
}

TEST_CASE("a flag has eight words and no ninth", "[environment]")
{
    for (const auto* word : {"A=true", "A=YES", "A=On", "A=1"}) {
        const block       given({word});
        weir::environment from(given);
        CHECK(from.flag("A", false));
    }
    for (const auto* word : {"A=false", "A=No", "A=OFF", "A=0"}) {
        const block       given({word});
        weir::environment from(given);
        CHECK_FALSE(from.flag("A", true));
        CHECK(from.complaint().empty());
    }
    const block       given({"A=tru"});
    weir::environment from(given);
    CHECK(from.flag("A", true));
    CHECK(from.complaint() == "A is \"tru\", allowed is true or false");
}

TEST_CASE("a number is all of the value and in its range", "[environment]")
{
    struct row {
        const char* line;
        int         read;  // 0: refused
    };
    const auto each = GENERATE(row{"N=1", 1}, row{"N=9", 9}, row{"N=007", 7}, row{"N=0", 0},
                               row{"N=10", 0}, row{"N=-1", 0}, row{"N=+5", 0}, row{"N= 5", 0},
                               row{"N=5 ", 0}, row{"N=5s", 0}, row{"N=5.0", 0}, row{"N=0x5", 0},
                               row{"N=99999999999999999999", 0});
    INFO(each.line);
    const block       given({each.line});
    weir::environment from(given);
    CHECK(from.integer("N", 0, 1, 9) == each.read);
    CHECK(from.complaint().empty() == (each.read != 0));
    if (each.read == 0) CHECK(from.complaint().ends_with(", allowed is 1 to 9"));
}

TEST_CASE("all problems are told in one line, in the order of reading", "[environment]")
{
    const block given({"LIMIT=0", "WINDOW=1h", "MODE=disk", "TRUST=10.0.0.0/8,nonsense",
                       "LISTEN=localhost:80"});
    weir::environment from(given);
    CHECK(from.integer("LIMIT", 60, 1, 1000) == 60);
    CHECK(from.seconds("WINDOW", 60s, 1s, 86400s) == 60s);
    CHECK(from.one_of("MODE", "memory", {"memory", "database"}) == "memory");
    CHECK(from.ranges("TRUST") == std::vector<std::string>{"10.0.0.0/8"});
    CHECK(from.listen("LISTEN", {.port = 8080}).port == 8080);
    CHECK(from.complaint() ==
          "LIMIT is \"0\", allowed is 1 to 1000; "
          "WINDOW is \"1h\", allowed is 1 to 86400; "
          "MODE is \"disk\", allowed is memory or database; "
          "TRUST is \"nonsense\", allowed is addresses, ranges such as 10.0.0.0/8, private and "
          "unix; "
          "LISTEN is \"localhost:80\", allowed is ADDRESS:PORT or [IPV6]:PORT with a port of 0 to "
          "65535");
}

TEST_CASE("a value with line feeds and control characters still makes one line", "[environment]")
{
    const block       given({"N=1\n2\x1b[31m"});
    weir::environment from(given);
    CHECK(from.integer("N", 7, 1, 9) == 7);
    CHECK(from.complaint() == "N is \"1?2?[31m\", allowed is 1 to 9");
}

TEST_CASE("a secret is never told, and a short one is refused (F04)", "[environment]")
{
    const block       given({"LONG=0123456789abcdef", "SHORT=0123456789abcde",
                             "GAP=0123456789 abcdef"});
    weir::environment from(given);
    CHECK(from.secret("LONG", 16) == "0123456789abcdef");
    CHECK(from.complaint().empty());

    CHECK_FALSE(from.secret("SHORT", 16));
    CHECK_FALSE(from.secret("GAP", 16));
    CHECK(from.complaint().find("SHORT is not shown, allowed is 16 characters") == 0);
    CHECK(from.complaint().find("GAP") != std::string::npos);
    CHECK(from.complaint().find("0123456789") == std::string::npos);
}

TEST_CASE("ranges are divided by commas or spaces", "[environment]")
{
    const block       given({"T=10.0.0.0/8, 2001:db8::/32  private,unix,192.0.2.1,"});
    weir::environment from(given);
    CHECK(from.ranges("T") == std::vector<std::string>{"10.0.0.0/8", "2001:db8::/32", "private",
                                                       "unix", "192.0.2.1"});
    CHECK(from.complaint().empty());
}

TEST_CASE("an address to listen at is an address and a port, written out", "[environment]")
{
    const auto at = [](std::string_view text) { return weir::parse_listen_address(text); };
    CHECK(at("127.0.0.1:8080")->port == 8080);
    CHECK(at("0.0.0.0:0")->at == weir::address::from_v4({}));
    CHECK(at("[::1]:65535")->at == weir::address::parse("::1"));
    for (const auto* wrong : {"", ":", "8080", ":8080", "127.0.0.1", "127.0.0.1:", "::1:80",
                              "[::1]", "[127.0.0.1]:80", "127.0.0.1:65536", "127.0.0.1:-1",
                              "127.0.0.1:80x", "localhost:80", "[::1:80", "a b:80"})
        CHECK_FALSE(at(wrong));
}

TEST_CASE("a variable that nobody asked for is a stranger", "[environment]")
{
    const block       given({"SITE_LIMIT=5", "SITE_LIMT=5", "OTHER=1", "SITE_=2"});
    weir::environment from(given);
    CHECK(from.integer("SITE_LIMIT", 7, 1, 9) == 5);
    CHECK(from.strangers("SITE_") == std::vector<std::string>{"SITE_LIMT", "SITE_"});
}
