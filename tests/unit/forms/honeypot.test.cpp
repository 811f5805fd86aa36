// SPDX-License-Identifier: BSL-1.0

#include "weir/forms/honeypot.hpp"

#include "catch.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using weir::honeypot;
using weir::trap;

TEST_CASE("D26: any value at all springs the trap, none does not", "[forms]")
{
    const honeypot field;
    CHECK(field.check("") == trap::empty);
    CHECK(field.check("http://spam.example") == trap::sprung);
    CHECK(field.check(" ") == trap::sprung);
    CHECK(field.check(std::string_view("\0", 1)) == trap::sprung);
    CHECK(field.check("x", 1h) == trap::sprung);  // not lenient unless told to be
}

TEST_CASE("O54: a trap that was filled slowly, with a valid token, is only suspicious", "[forms]")
{
    const honeypot field({.lenient_after = 8s});
    CHECK(field.check("Ada", 8s) == trap::suspicious);
    CHECK(field.check("Ada", 8s - 1ns) == trap::sprung);
    CHECK(field.check("Ada", 900ms) == trap::sprung);
    CHECK(field.check("Ada", std::nullopt) == trap::sprung);
    CHECK(field.check("", 8s) == trap::empty);
}

TEST_CASE("O54: the field is off screen, unfocusable, unannounced and not one that browsers fill",
          "[forms]")
{
    const auto html = honeypot().markup();
    CHECK_THAT(html, Contains("aria-hidden=\"true\" inert>"));
    CHECK_THAT(html, Contains("tabindex=\"-1\""));
    CHECK_THAT(html, Contains("autocomplete=\"off\""));
    CHECK_THAT(html, Contains("left:-10000px"));
    CHECK_THAT(html, Contains("type=\"text\""));  // scripts pass over type=hidden
    CHECK_THAT(html, !Contains("display:none"));
    CHECK_THAT(html, Contains("name=\"" + honeypot().name() + '"'));
    for (const auto* const known :
         {"email", "mail", "zip", "url", "website", "phone", "tel", "name", "address", "city",
          "company", "title", "card", "user", "pass"})
        CHECK(honeypot().name().find(known) == std::string::npos);
}

TEST_CASE("names and labels are safe in HTML", "[forms]")
{
    const auto html = honeypot({.name = "a\"><script>", .label = "<b>&'"}).markup();
    CHECK_THAT(html, Contains("name=\"a&quot;&gt;&lt;script&gt;\""));
    CHECK_THAT(html, Contains("&lt;b&gt;&amp;&#39;"));
    CHECK_THAT(html, !Contains("<script>"));
}

TEST_CASE("with a class there is no inline style, and the rule for it comes along", "[forms]")
{
    const honeypot field({.css_class = "aside"});
    CHECK_THAT(field.markup(), Contains("class=\"aside\""));
    CHECK_THAT(field.markup(), !Contains("style="));
    CHECK_THAT(field.css(), Contains(".aside{position:absolute;left:-10000px"));
    CHECK(honeypot().css().empty());
}
