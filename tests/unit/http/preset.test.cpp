// SPDX-License-Identifier: BSL-1.0

#include "weir/http/preset.hpp"

#include "catch.hpp"
#include "weir/http/limit.hpp"
#include "weir/policy/lockout.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

using namespace std::chrono_literals;
using namespace weir::http;

namespace {

/// 2026-08-24T12:00:30Z: half of a minute on the clock is over.
constexpr weir::instant half_past{1'787'572'830s};

/// One limit of a preset, and clients that ask it.
class asked {
public:
    explicit asked(const limit_options& options) : limit_(options, counters_) {}

    std::optional<answer> by(std::string_view client, weir::instant at,
                             std::vector<weir::header_line> lines    = {},
                             std::string_view               location = "e1")
    {
        const weir::request request(lines, {.method = "POST", .target = "/f/e1"});
        const auto          address = weir::address::parse(client);
        const auto          who     = address ? weir::client(*address) : weir::client();
        passage             through;
        auto                given =
            limit_.admit({.from = request, .client = who, .location = location}, through, at);
        told_ = through.quota().fields();
        return given;
    }

    /// How many of `times` go on.
    int passed(int times, std::string_view client, weir::instant at)
    {
        int count = 0;
        for (int i = 0; i < times; ++i) count += !by(client, at);
        return count;
    }

    [[nodiscard]] bool told_quota() const noexcept { return !told_.empty(); }

private:
    counters                          counters_{{.max_keys = 1000}};
    limit                             limit_;
    std::vector<weir::refusal_header> told_;
};

std::string field(const std::optional<answer>& of, std::string_view name)
{
    if (of)
        for (const auto& one : of->fields)
            if (one.name == name) return one.value;
    return "none";
}

std::string wait(const std::optional<answer>& of) { return field(of, "Retry-After"); }

limit_options with_max(limit_options options, std::uint64_t max, weir::duration interval)
{
    options.max      = max;
    options.interval = interval;
    options.burst    = {};
    return options;
}

}  // namespace

TEST_CASE("a preset is found under its name, and nothing under any other", "[preset]")
{
    REQUIRE(preset::names().size() == 5);
    for (const auto name : preset::names()) {
        const auto found = preset::find(name);
        REQUIRE(found);
        CHECK(found->name == name);
    }
    CHECK_FALSE(preset::find("Forms"));
    CHECK_FALSE(preset::find(""));
}

TEST_CASE("F45, F49: presets trust nobody and count no hops until they are told to", "[preset]")
{
    for (const auto name : preset::names()) {
        const auto address = preset::find(name)->address;
        CHECK(address.trusted_hops == 0);
        CHECK(address.trusted.empty());
        CHECK_FALSE(address.edge_replaces_header);
    }
}

TEST_CASE("F02, F14-F17: forms refuses the 61st with the envelope and the end of the window",
          "[preset]")
{
    asked forms(preset::forms().client);
    CHECK(forms.passed(60, "203.0.113.1", half_past - 30s) == 60);
    const auto refused = forms.by("203.0.113.1", half_past);
    REQUIRE(refused);
    CHECK(refused->status == 429);
    CHECK(wait(refused) == "30");
    CHECK(field(refused, "Content-Type") == "application/json");
    CHECK(refused->body ==
          R"({"error":{"code":"rate_limit_exceeded","message":"Too many submission attempts. )"
          R"(Try again in 30 seconds.","details":{"scope":"ip","limit":60,"window_seconds":60,)"
          R"("retry_after_seconds":30}}})");
    CHECK_FALSE(forms.by("203.0.113.2", half_past));
}

TEST_CASE("F20: forms rounds the wait up, and never below one second", "[preset]")
{
    asked forms(preset::forms().client);
    CHECK(forms.passed(60, "::1", half_past - 30s) == 60);
    CHECK(wait(forms.by("::1", half_past - 30s)) == "60");
    CHECK(wait(forms.by("::1", half_past)) == "30");
    CHECK(wait(forms.by("::1", half_past + 500ms)) == "30");
    CHECK(wait(forms.by("::1", half_past + 29'999'999us)) == "1");
}

TEST_CASE("F21: forms tells no quota, neither when it admits nor when it refuses", "[preset]")
{
    asked forms(with_max(preset::forms().client, 1, 60s));
    CHECK_FALSE(forms.by("::1", half_past));
    CHECK_FALSE(forms.told_quota());
    CHECK(forms.by("::1", half_past));
    CHECK_FALSE(forms.told_quota());
}

TEST_CASE("F24-F26: windows of forms are minutes of the clock, with their soft edge", "[preset]")
{
    asked forms(preset::forms().client);
    CHECK(forms.passed(60, "::1", half_past + 29s) == 60);
    CHECK(forms.by("::1", half_past + 29'999ms));
    CHECK(forms.passed(60, "::1", half_past + 30s) == 60);
    CHECK(wait(forms.by("::1", half_past + 31s)) == "59");
}

TEST_CASE("F03, F09, F10: forms' limit of a place counts all clients, each place alone", "[preset]")
{
    const auto place = preset::forms().place;
    REQUIRE(place);
    CHECK(place->name == "endpoint");
    CHECK(place->max == 600U);
    CHECK(place->interval == 60s);

    asked forms(*place);
    for (int i = 0; i < 600; ++i)
        CHECK_FALSE(
            forms.by("10.0." + std::to_string(i / 200) + "." + std::to_string(i % 200), half_past));
    const auto refused = forms.by("203.0.113.1", half_past);
    REQUIRE(refused);
    CHECK(refused->body.find(R"("scope":"endpoint","limit":600)") != std::string::npos);
    CHECK_FALSE(forms.by("203.0.113.1", half_past, {}, "e2"));
}

TEST_CASE("F51: who has no address shares one bucket of forms and is not exempt", "[preset]")
{
    asked forms(preset::forms().client);
    CHECK(forms.passed(61, "", half_past) == 60);
}

TEST_CASE("P05, P16, P43, P44: pingap refuses the 601st in its words and tells the interval",
          "[preset]")
{
    CHECK(preset::pingap().client.interval == 10s);
    CHECK_FALSE(preset::pingap().client.max);
    CHECK_FALSE(preset::pingap().place);

    asked pingap(with_max(preset::pingap().client, 600, 60s));
    CHECK(pingap.passed(600, "1.1.1.1", half_past - 30s) == 600);
    const auto refused = pingap.by("1.1.1.1", half_past);
    REQUIRE(refused);
    CHECK(refused->status == 429);
    CHECK(refused->body == "Plugin limit, exceed limit 601/600");
    CHECK(wait(refused) == "60");
    CHECK_FALSE(pingap.told_quota());
}

TEST_CASE("P17, P18: pingap lets a client in again as its last window fades", "[preset]")
{
    asked pingap(with_max(preset::pingap().client, 600, 60s));
    CHECK(pingap.passed(601, "::1", half_past - 30s) == 600);
    CHECK(pingap.passed(1, "::1", half_past + 30s) == 0);
    CHECK(pingap.passed(1, "::1", half_past + 30'100ms) == 1);
}

TEST_CASE("P36: pingap lets who leaves the key out through, and strict answers 400", "[preset]")
{
    auto loose = with_max(preset::pingap().client, 0, 60s);
    auto tight = with_max(preset::strict().client, 5, 60s);
    loose.tag = tight.tag = limit_tag::header;
    loose.key = tight.key = "X-Api-Key";

    CHECK_FALSE(asked(loose).by("::1", half_past));
    CHECK(asked(loose).by("::1", half_past, {{"X-Api-Key", "k"}})->status == 429);
    const auto refused = asked(tight).by("::1", half_past);
    REQUIRE(refused);
    CHECK(refused->status == 400);
    CHECK(wait(refused) == "none");
    CHECK_FALSE(asked(tight).by("::1", half_past, {{"X-Api-Key", "k"}}));
}

TEST_CASE("L02, L07: signin answers too_many without a wait, and one count for the unknown",
          "[preset]")
{
    asked signin(preset::signin().client);
    CHECK(signin.passed(6, "203.0.113.1", half_past) == 5);
    const auto refused = signin.by("203.0.113.1", half_past + 1s);
    REQUIRE(refused);
    CHECK(refused->status == 429);
    CHECK(refused->body == R"({"error":"too_many"})");
    CHECK(wait(refused) == "none");
    CHECK_FALSE(signin.told_quota());
    CHECK(signin.passed(6, "no address", half_past) == 5);
    CHECK(signin.passed(1, "203.0.113.2", half_past) == 1);
}

TEST_CASE("L09, L12: signin locks out for 15 minutes after five failures, then twice as long",
          "[preset]")
{
    const auto           lock = preset::signin().lockout.value();
    weir::lockout::state state;
    std::vector<int>     minutes;
    auto                 at = half_past;
    for (int n = 0; n < 9; ++n) {
        CHECK(lock.spend(state, 1, 6, at) == 5);
        const auto closed = at;
        while (!lock.read(state, 1, at).fits) at += 1min;
        minutes.push_back(static_cast<int>((at - closed) / 1min));
    }
    CHECK(minutes == std::vector<int>{15, 30, 60, 120, 240, 480, 960, 1440, 1440});
}

TEST_CASE("D11: signup caps the mails of an hour and a day, and its limit tells no wait",
          "[preset]")
{
    const auto signup = preset::signup();
    CHECK(signup.caps == weir::calendar_caps{.per_hour = 30, .per_day = 100});
    asked one(signup.client);
    CHECK(one.passed(21, "::1", half_past) == 20);
    const auto refused = one.by("::1", half_past);
    REQUIRE(refused);
    CHECK(refused->status == 429);
    CHECK(wait(refused) == "none");
}

TEST_CASE("2.1: strict admits no more than max in any span, and max again and again", "[preset]")
{
    asked                      strict(with_max(preset::strict().client, 10, 10s));
    std::vector<weir::instant> admitted;
    for (auto at = half_past - 1s; at < half_past + 60s; at += 50ms)
        if (!strict.by("::1", at)) admitted.push_back(at);

    std::size_t most = 0, from = 0;
    for (std::size_t to = 0; to < admitted.size(); ++to) {
        while (admitted[to] - admitted[from] >= 10s) ++from;
        most = std::max(most, to - from + 1);
    }
    CHECK(most == 10);
    CHECK(admitted.size() > 30);
}

TEST_CASE("2.7: the wait that strict tells is the one that helps", "[preset]")
{
    asked strict(with_max(preset::strict().client, 4, 60s));
    while (!strict.by("::1", half_past)) {}
    const auto seconds = std::stoi(wait(strict.by("::1", half_past)));
    CHECK(seconds < 60);
    CHECK(strict.by("::1", half_past + std::chrono::seconds(seconds - 1)));
    CHECK_FALSE(strict.by("::1", half_past + std::chrono::seconds(seconds)));
}

TEST_CASE("strict answers with a problem document and closes when a store is away", "[preset]")
{
    asked      strict(with_max(preset::strict().client, 0, 60s));
    const auto refused = strict.by("::1", half_past);
    REQUIRE(refused);
    CHECK(field(refused, "Content-Type") == "application/problem+json");
    CHECK(preset::strict().client.on_outage == weir::fail_closed);
}

TEST_CASE("2.16: addresses of one /64 are one client to every preset", "[preset]")
{
    for (const auto name : preset::names()) {
        asked limit(with_max(preset::find(name)->client, 1, 60s));
        INFO(name);
        CHECK(limit.passed(1, "2001:db8::1", half_past) == 1);
        CHECK(limit.passed(1, "2001:db8::2", half_past) == 0);
        CHECK(limit.passed(1, "2001:db8:0:1::1", half_past) == 1);
    }
}
