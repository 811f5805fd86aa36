// SPDX-License-Identifier: BSL-1.0

#include "weir/http/limit_options.hpp"

#include <algorithm>
#include <string>

#include "weir/http/any_limiter.hpp"
#include "weir/invalid.hpp"

namespace weir::http {

namespace {

/// Tells what is wrong with the options of one limit.
class complaint {
public:
    explicit complaint(const limit_options& of) : of_(of) {}

    void unless(bool right, const std::string& what) const
    {
        if (!right) weir::detail::invalid("limit \"" + of_.name + "\": " + what);
    }

private:
    const limit_options& of_;
};

void check_numbers(const limit_options& options, const complaint& complain)
{
    using std::to_string;
    complain.unless(options.max.has_value(), "max is required");
    complain.unless(
        options.type == limit_type::inflight || options.interval >= std::chrono::milliseconds(1),
        "interval is " + to_string(options.interval.count()) + " ns, it must be at least 1ms");
    complain.unless(options.status >= 400 && options.status <= 599,
                    "status is " + to_string(options.status) + ", it must be between 400 and 599");
    complain.unless(options.ipv6_prefix >= 1 && options.ipv6_prefix <= 128,
                    "ipv6_prefix is " + to_string(options.ipv6_prefix) +
                        ", it must be between 1 and 128");
    complain.unless(!options.burst || *options.burst > 0, "burst is 0, it must be at least 1");
    complain.unless(options.type != limit_type::rate || options.policy != limit_policy::strict ||
                        options.burst.value_or(0) <= *options.max,
                    "burst is " + to_string(options.burst.value_or(0)) +
                        ", with policy strict it must be at most max, " + to_string(*options.max));
}

void check_tiers(const limit_options& options, const complaint& complain)
{
    if (options.tiers.empty()) return;
    complain.unless(options.type == limit_type::rate && options.tag == limit_tag::ip,
                    "tiers are for type rate and tag ip only");
    complain.unless(options.tiers.size() <= any_limiter::most_tiers,
                    "there are " + std::to_string(options.tiers.size()) +
                        " tiers; at most 3 are allowed");
    int narrower = options.ipv6_prefix;
    for (const auto& tier : options.tiers) {
        complain.unless(tier.prefix >= 1 && tier.prefix < narrower,
                        "the prefix of a tier is " + std::to_string(tier.prefix) +
                            ", it must be between 1 and " + std::to_string(narrower - 1) +
                            ", each wider than the one before");
        narrower = tier.prefix;
    }
}

/// Places are memory: one needs 88 bytes.
void check_inflight(const limit_options& options, const complaint& complain)
{
    constexpr std::uint64_t most = std::uint64_t{1} << 20;
    if (options.type != limit_type::inflight) return;
    complain.unless(options.store == "memory",
                    "store is \"" + options.store +
                        "\"; requests in progress are counted exactly in the process, so only "
                        "memory is allowed");
    const auto largest =
        std::ranges::max_element(options.overrides, {}, [](const auto& one) { return one.second; });
    const auto max =
        std::max(*options.max, largest == options.overrides.end() ? 0 : largest->second);
    complain.unless(max <= most, "max is " + std::to_string(max) +
                                     "; an inflight limit allows at most " + std::to_string(most));
}

}  // namespace

void check(const limit_options& options)
{
    const complaint complain(options);
    check_numbers(options, complain);
    const bool wants_key = options.tag == limit_tag::header || options.tag == limit_tag::cookie ||
                           options.tag == limit_tag::query;
    complain.unless(!wants_key || !options.key.empty(),
                    "key is required for a header, cookie or query tag");
    check_tiers(options, complain);
    check_inflight(options, complain);
    complain.unless(options.overrides.empty() || options.tag != limit_tag::ip_ja4,
                    "overrides are for a tag of one value, not for ip_ja4");
}

std::string_view name(limit_type of) noexcept
{
    return of == limit_type::rate ? "rate" : "inflight";
}

std::string_view name(limit_tag of) noexcept
{
    switch (of) {
    case limit_tag::ip:
        return "ip";
    case limit_tag::header:
        return "header";
    case limit_tag::cookie:
        return "cookie";
    case limit_tag::query:
        return "query";
    case limit_tag::ja4:
        return "ja4";
    case limit_tag::ip_ja4:
        return "ip_ja4";
    case limit_tag::location:
        return "location";
    }
    return "unnamed";
}

std::string_view name(limit_step of) noexcept
{
    return of == limit_step::request ? "request" : "proxy_upstream";
}

std::string_view name(limit_policy of) noexcept
{
    switch (of) {
    case limit_policy::sliding:
        return "sliding";
    case limit_policy::fixed:
        return "fixed";
    case limit_policy::gcra:
        return "gcra";
    case limit_policy::strict:
        return "strict";
    }
    return "unnamed";
}

}  // namespace weir::http
