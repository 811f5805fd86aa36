// SPDX-License-Identifier: BSL-1.0

#include "weir/http/refusal.hpp"

#include "catch.hpp"

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

using namespace std::chrono_literals;

namespace {

/// A refusal of the limit "ip", 60 per minute, as the forms service's documentation shows it.
weir::decision refused(std::optional<weir::duration> wait)
{
    return {.verdict     = weir::verdict::refused,
            .limiter     = "ip",
            .limit       = 60,
            .window      = 60s,
            .retry_after = wait};
}

weir::decision store_away(std::optional<weir::duration> wait = std::nullopt)
{
    auto decision  = refused(wait);
    decision.basis = weir::basis::store_unavailable;
    return decision;
}

std::optional<std::string> header(const weir::refusal& refusal, std::string_view name)
{
    const auto fields = refusal.headers();
    const auto found  = std::find_if(fields.begin(), fields.end(),
                                     [&](const auto& field) { return field.name == name; });
    if (found == fields.end()) return std::nullopt;
    return found->value;
}

std::vector<std::string_view> names(const weir::refusal& refusal)
{
    std::vector<std::string_view> all;
    for (const auto& field : refusal.headers()) all.push_back(field.name);
    return all;
}

std::string json_string(std::string_view bytes)
{
    std::string json;
    weir::append_json_string(json, bytes);
    return json;
}

constexpr weir::refusal_options envelope{.body = weir::refusal_body::envelope};
constexpr weir::refusal_options minimal{.body = weir::refusal_body::minimal};

}  // namespace

TEST_CASE("a refusal is a 429 in plain text that no cache may keep (R3)", "[refusal]")
{
    const weir::refusal refusal(refused(30s));

    CHECK(refusal.status() == 429);
    CHECK(refusal.body() == "Too many requests. Try again in 30 seconds.\n");
    CHECK(refusal.content_type() == "text/plain; charset=utf-8");
    CHECK(names(refusal) ==
          std::vector<std::string_view>{"Content-Type", "Cache-Control", "Retry-After"});
    CHECK(header(refusal, "Content-Type") == "text/plain; charset=utf-8");
    CHECK(header(refusal, "Cache-Control") == "no-store");
    CHECK(header(refusal, "Retry-After") == "30");
}

TEST_CASE("Retry-After is whole seconds, rounded up and at least one", "[refusal]")
{
    struct row {
        const char*      source;
        weir::duration   wait;
        std::string_view said;
    };
    const auto each = GENERATE(
        row{"R1: one nanosecond", 1ns, "1"}, row{"R1: one millisecond", 1ms, "1"},
        row{"R1: one second", 1000ms, "1"}, row{"R1: no wait at all", 0s, "1"},
        row{"P44 as we round: 1500 ms", 1500ms, "2"}, row{"P44: 500 ms", 500ms, "1"},
        row{"F20: 29.5 s left", 29'500ms, "30"}, row{"F20: 1 us left", 1us, "1"},
        row{"F20: a whole window", 60s, "60"}, row{"O28: 58 s of 60", 58s, "58"},
        row{"O30: the last second of an hour", 1s, "1"},
        row{"O30: 1 ms into an hour", 3'599'999ms, "3600"}, row{"a wait below zero", -5s, "1"},
        row{"the longest wait", weir::duration::max(), "9223372037"});

    INFO(each.source);
    CHECK(header(weir::refusal(refused(each.wait)), "Retry-After") == each.said);
}

TEST_CASE("Retry-After is a wait and never a date: at most the window, rounded up (O29)",
          "[refusal]")
{
    std::uint64_t state = 0x9e3779b97f4a7c15;
    for (int i = 0; i < 2000; ++i) {
        state = state * 6364136223846793005 + 1442695040888963407;
        const auto at   = weir::instant(weir::duration(static_cast<std::int64_t>(state >> 1U)));
        const auto wait = weir::saturating_sub(weir::window_end(at, 60s), at);
        const auto said = weir::retry_after_seconds(refused(wait));
        REQUIRE(said.has_value());
        REQUIRE(*said >= 1);
        REQUIRE(*said <= 60);
        REQUIRE(std::chrono::seconds(*said) >= wait);
    }
}

TEST_CASE("no Retry-After is sent when no wait is known to help (O22)", "[refusal]")
{
    auto never  = refused(std::nullopt);
    never.limit = 0;

    const weir::refusal text(never);
    CHECK(text.status() == 429);
    CHECK(names(text) == std::vector<std::string_view>{"Content-Type", "Cache-Control"});
    CHECK(text.body() == "Too many requests.\n");

    CHECK(weir::refusal(never, envelope).body() ==
          R"({"error":{"code":"rate_limit_exceeded","message":"Too many submission attempts.",)"
          R"("details":{"scope":"ip","limit":0,"window_seconds":60,"retry_after_seconds":null}}})");
}

TEST_CASE("the envelope is exactly what the forms service documents (F14, F15, F16)", "[refusal]")
{
    const weir::refusal refusal(refused(30s), envelope);

    CHECK(refusal.status() == 429);
    CHECK(refusal.content_type() == "application/json");
    CHECK(header(refusal, "Retry-After") == "30");
    CHECK(refusal.body() ==
          R"({"error":{"code":"rate_limit_exceeded",)"
          R"("message":"Too many submission attempts. Try again in 30 seconds.",)"
          R"("details":{"scope":"ip","limit":60,"window_seconds":60,"retry_after_seconds":30}}})");
}

TEST_CASE("the number in the message and in the details is the number in Retry-After", "[refusal]")
{
    const auto wait = GENERATE(1ns, 999'999'999ns, 1'000'000'001ns, 29'500'000'000ns);
    const weir::refusal refusal(refused(wait), envelope);

    const auto seconds = header(refusal, "Retry-After").value();
    CHECK(refusal.body().find("Try again in " + seconds + " seconds.") != std::string::npos);
    CHECK(refusal.body().find("\"retry_after_seconds\":" + seconds + "}") != std::string::npos);
}

TEST_CASE("one second is said in the same words as any other number (F17)", "[refusal]")
{
    CHECK(weir::refusal(refused(1s), envelope).body().find("Try again in 1 seconds.") !=
          std::string::npos);
}

TEST_CASE("no body tells what is left, what it cost or when it was judged (F18)", "[refusal]")
{
    auto decision = refused(30s);
    decision.left = 41'235, decision.cost = 51'235;
    decision.reset_after = 61'235s;
    decision.at          = weir::instant(71'235s);

    for (const auto body :
         {weir::refusal_body::text, weir::refusal_body::envelope, weir::refusal_body::minimal})
        CHECK(weir::refusal(decision, {.body = body}).body().find("1235") == std::string::npos);
}

TEST_CASE("no header counts for the client: three fields are all that is sent (F21)", "[refusal]")
{
    for (const auto& options : {weir::refusal_options{}, envelope, minimal})
        CHECK(names(weir::refusal(refused(30s), options)) ==
              std::vector<std::string_view>{"Content-Type", "Cache-Control", "Retry-After"});
}

TEST_CASE("a limit without a window has a null window in the envelope", "[refusal]")
{
    auto in_flight   = refused(std::nullopt);
    in_flight.window = {};
    CHECK(weir::refusal(in_flight, envelope).body().find(R"("window_seconds":null,)") !=
          std::string::npos);
}

TEST_CASE("a window that is no whole number of seconds is rounded up", "[refusal]")
{
    auto decision   = refused(100ms);
    decision.window = 1500ms;
    CHECK(weir::refusal(decision, envelope).body().find(R"("window_seconds":2,)") !=
          std::string::npos);
}

TEST_CASE("the largest limit is written in full", "[refusal]")
{
    auto decision  = refused(1s);
    decision.limit = std::numeric_limits<std::uint64_t>::max();
    CHECK(weir::refusal(decision, envelope).body().find(R"("limit":18446744073709551615,)") !=
          std::string::npos);
}

TEST_CASE("the minimal body says too_many and, if asked, tells no wait (L07)", "[refusal]")
{
    CHECK(weir::refusal(refused(30s), minimal).body() == R"({"error":"too_many"})");
    CHECK(header(weir::refusal(refused(30s), minimal), "Retry-After") == "30");

    const weir::refusal silent(refused(30s),
                               {.body = weir::refusal_body::minimal, .tell_wait = false});
    CHECK(silent.status() == 429);
    CHECK(silent.body() == R"({"error":"too_many"})");
    CHECK(names(silent) == std::vector<std::string_view>{"Content-Type", "Cache-Control"});
}

TEST_CASE("without tell_wait no body names the wait", "[refusal]")
{
    const auto body = GENERATE(weir::refusal_body::text, weir::refusal_body::envelope);
    const weir::refusal refusal(refused(31s), {.body = body, .tell_wait = false});
    CHECK(refusal.body().find("31") == std::string::npos);
}

TEST_CASE("a store that is away is a 503 without Retry-After (O58, F60)", "[refusal]")
{
    const weir::refusal text(store_away());
    CHECK(text.status() == 503);
    CHECK(names(text) == std::vector<std::string_view>{"Content-Type", "Cache-Control"});
    CHECK(text.body() == "Temporarily unavailable.\n");

    CHECK(weir::refusal(store_away(), envelope).body() ==
          R"({"error":{"code":"storage_unavailable","message":"Temporarily unavailable.",)"
          R"("details":{"scope":"ip","limit":60,"window_seconds":60,)"
          R"("retry_after_seconds":null}}})");
    CHECK(weir::refusal(store_away(), minimal).body() == R"({"error":"unavailable"})");
}

TEST_CASE("a 503 carries Retry-After when the decision knows the wait", "[refusal]")
{
    const weir::refusal refusal(store_away(5s));
    CHECK(refusal.status() == 503);
    CHECK(header(refusal, "Retry-After") == "5");
    CHECK(refusal.body() == "Temporarily unavailable. Try again in 5 seconds.\n");
}

TEST_CASE("a limiter of this process that stands in for a store refuses with 429", "[refusal]")
{
    auto decision  = refused(3s);
    decision.basis = weir::basis::local;
    CHECK(weir::refusal(decision).status() == 429);
}

TEST_CASE("status and message are the operator's, and Retry-After stays (P45)", "[refusal]")
{
    const weir::refusal refusal(refused(30s), {.status = 503, .message = "slow down"});
    CHECK(refusal.status() == 503);
    CHECK(refusal.body() == "slow down");
    CHECK(header(refusal, "Retry-After") == "30");
}

TEST_CASE("each of the two statuses can be chosen alone", "[refusal]")
{
    const weir::refusal_options options{.status = 420, .unavailable = 529};
    CHECK(weir::refusal(refused(1s), options).status() == 420);
    CHECK(weir::refusal(store_away(), options).status() == 529);
}

TEST_CASE("a status outside 400 to 599 is refused where the options are written", "[refusal]")
{
    CHECK_NOTHROW(weir::refusal_options{.status = 400});
    CHECK_NOTHROW(weir::refusal_options{.status = 599});
    for (const int code : {-1, 0, 200, 399, 600, 4290})
        CHECK_THROWS_AS(weir::error_status(code), std::invalid_argument);
    CHECK_THROWS_WITH(weir::error_status(200), Catch::Contains("400 to 599, not 200"));
}

TEST_CASE("a message of the operator is a JSON string in the envelope", "[refusal]")
{
    const weir::refusal refusal(
        refused(2s), {.body = weir::refusal_body::envelope, .message = "say \"please\"\n"});
    CHECK(refusal.body().find(R"("message":"say \"please\"\u000a",)") != std::string::npos);
}

TEST_CASE("a HEAD gets the same headers and no body (R4)", "[refusal]")
{
    const weir::refusal refusal(refused(30s));
    CHECK(refusal.body_for("HEAD").empty());
    CHECK(refusal.body_for("GET") == refusal.body());
    CHECK(refusal.body_for("head") == refusal.body());  // methods are case-sensitive
}

TEST_CASE("any bytes of a name become a well-formed JSON string", "[refusal]")
{
    struct row {
        const char*      source;
        std::string_view bytes;
        std::string_view json;
    };
    using namespace std::string_view_literals;
    const auto each = GENERATE(
        row{"plain", "site.ip", R"("site.ip")"}, row{"empty", "", R"("")"},
        row{"quote and backslash", R"(a"b\c)", R"("a\"b\\c")"},
        row{"NUL", "a\0b"sv, R"("a\u0000b")"},
        row{"controls", "\x01\t\n\x1f", R"("\u0001\u0009\u000a\u001f")"},
        row{"delete", "\x7f", R"("\u007f")"},
        row{"two, three and four bytes", "é€😀", "\"é€😀\""},
        row{"a lone continuation", "a\x80z", "\"a\xef\xbf\xbdz\""},
        row{"an overlong slash", "\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
        row{"an overlong of three", "\xe0\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        row{"a surrogate", "\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        row{"the last before the surrogates", "\xed\x9f\xbf", "\"\xed\x9f\xbf\""},
        row{"the largest", "\xf4\x8f\xbf\xbf", "\"\xf4\x8f\xbf\xbf\""},
        row{"over the largest", "\xf4\x90\x80\x80",
            "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        row{"no such lead", "\xff\xfe", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
        row{"cut short at the end", "a\xe2\x82", "\"a\xef\xbf\xbd\xef\xbf\xbd\""},
        row{"cut short by a quote", "\xe2\x82\"", "\"\xef\xbf\xbd\xef\xbf\xbd\\\"\""});

    INFO(each.source);
    CHECK(json_string(each.bytes) == each.json);
}

TEST_CASE("no three bytes make a JSON string that ends early or holds a control", "[refusal]")
{
    std::string bytes(3, '\0');
    for (int first = 0; first < 256; ++first) {
        for (int second = 0; second < 256; ++second) {
            bytes[0] = static_cast<char>(first), bytes[1] = static_cast<char>(second);
            bytes[2] = '"';
            const auto json = json_string(bytes);
            REQUIRE(json.size() >= 5);
            // The quote that was given is escaped, the one that ends the string is not.
            REQUIRE(json.ends_with("\\\"\""));
            REQUIRE(std::all_of(json.begin(), json.end(),
                                [](unsigned char c) { return c >= 0x20; }));
        }
    }
}

TEST_CASE("a refusal keeps nothing of the decision's name", "[refusal]")
{
    std::string name     = "a name that is too long to be stored inside a string";
    auto        decision = refused(1s);
    decision.limiter     = name;
    const weir::refusal refusal(decision, envelope);
    name.assign(name.size(), '#');
    CHECK(refusal.body().find("too long") != std::string::npos);
    CHECK(refusal.body().find('#') == std::string::npos);
}

TEST_CASE("RFC 9457: a problem names the policy that was violated", "[refusal]")
{
    const weir::refusal told(refused(59s), {.body = weir::refusal_body::problem});
    CHECK(told.content_type() == "application/problem+json");
    CHECK(told.body() ==
          R"({"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",)"
          R"("title":"The quota is used up","status":429,)"
          R"("detail":"Too many requests. Try again in 59 seconds.","violated-policies":["ip"]})");
}

TEST_CASE("RFC 9457: a problem names all policies, whatever is in their names", "[refusal]")
{
    const std::vector<std::string_view> names{"ip", "a\"b\n"};
    const weir::refusal told(refused(1s),
                             {.body = weir::refusal_body::problem, .violated = names});
    CHECK(told.body().ends_with(R"("violated-policies":["ip","a\"b\u000a"]})"));
}

TEST_CASE("RFC 9457: a 503 is a problem of capacity", "[refusal]")
{
    const weir::refusal told(store_away(), {.body = weir::refusal_body::problem});
    CHECK(told.status() == 503);
    CHECK(told.body().starts_with(
        R"({"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity")"));
    CHECK(told.body().find(R"("detail":"Temporarily unavailable.")") != std::string::npos);
}
