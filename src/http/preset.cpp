// SPDX-License-Identifier: BSL-1.0

#include "weir/http/preset.hpp"

#include <array>
#include <chrono>

namespace weir::http {
namespace {

using namespace std::chrono_literals;

constexpr std::array<std::string_view, 5> all = {"forms", "pingap", "signin", "signup", "strict"};

limit_options form_limit(std::string_view name, limit_tag tag, std::uint64_t max)
{
    return {.name        = std::string(name),
            .tag         = tag,
            .max         = max,
            .interval    = 60s,
            .headers     = false,
            .missing_key = weir::missing_key::shared_bucket,
            .policy      = limit_policy::fixed,
            .retry_after = told_wait::exact,
            .body        = refusal_body::envelope};
}

}  // namespace

preset preset::forms()
{
    return {.name    = "forms",
            .address = {.trusted_hops = 0},
            .client  = form_limit("ip", limit_tag::ip, 60),
            .place   = form_limit("endpoint", limit_tag::location, 600)};
}

preset preset::pingap() { return {.name = "pingap", .client = {.name = "limit"}}; }

preset preset::strict()
{
    return {.name   = "strict",
            .client = {.name        = "strict",
                       .missing_key = weir::missing_key::reject,
                       .policy      = limit_policy::strict,
                       .retry_after = told_wait::exact,
                       .on_outage   = fail_closed,
                       .ipv6_prefix = 64,
                       .body        = refusal_body::problem}};
}

preset preset::signin()
{
    return {.name   = "signin",
            .client = {.name        = "signin",
                       .max         = 5,
                       .interval    = 15min,
                       .missing_key = weir::missing_key::shared_bucket,
                       .policy      = limit_policy::strict,
                       .burst       = 5,
                       .retry_after = told_wait::none,
                       .on_outage   = fail_closed,
                       .body        = refusal_body::minimal},
            .lockout =
                weir::lockout{.failures = 5, .window = 15min, .first = 15min, .longest = 24h}};
}

preset preset::signup()
{
    return {.name   = "signup",
            .client = {.name        = "signup",
                       .max         = 20,
                       .interval    = 1h,
                       .missing_key = weir::missing_key::shared_bucket,
                       .retry_after = told_wait::none,
                       .on_outage   = fail_closed},
            .caps   = calendar_caps{.per_hour = 30, .per_day = 100}};
}

std::span<const std::string_view> preset::names() noexcept { return all; }

std::optional<preset> preset::find(std::string_view name)
{
    if (name == "forms") return forms();
    if (name == "pingap") return pingap();
    if (name == "signin") return signin();
    if (name == "signup") return signup();
    if (name == "strict") return strict();
    return std::nullopt;
}

}  // namespace weir::http
