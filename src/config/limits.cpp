// SPDX-License-Identifier: BSL-1.0

#include "weir/config/limits.hpp"

#include "words.hpp"
#include "weir/extract/cidr.hpp"
#include "weir/http/any_limiter.hpp"
#include "weir/http/preset.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace weir::config {
namespace {

using namespace std::chrono_literals;
using http::limit_options;

constexpr word<http::limit_type> types[] = {{"rate", http::limit_type::rate},
                                            {"inflight", http::limit_type::inflight}};

constexpr word<http::limit_tag> tags[] = {{"ip", http::limit_tag::ip},
                                          {"header", http::limit_tag::header},
                                          {"cookie", http::limit_tag::cookie},
                                          {"query", http::limit_tag::query},
                                          {"ja4", http::limit_tag::ja4},
                                          {"ip_ja4", http::limit_tag::ip_ja4},
                                          {"location", http::limit_tag::location}};

constexpr word<http::limit_step> steps[] = {{"request", http::limit_step::request},
                                            {"proxy_upstream", http::limit_step::proxy_upstream}};

constexpr word<weir::missing_key> missing_keys[] = {
    {"pass", weir::missing_key::pass},
    {"reject", weir::missing_key::reject},
    {"shared_bucket", weir::missing_key::shared_bucket}};

constexpr word<http::limit_policy> policies[] = {{"sliding", http::limit_policy::sliding},
                                                 {"fixed", http::limit_policy::fixed},
                                                 {"gcra", http::limit_policy::gcra},
                                                 {"strict", http::limit_policy::strict}};

constexpr word<http::told_wait> waits[] = {{"interval", http::told_wait::interval},
                                           {"exact", http::told_wait::exact},
                                           {"none", http::told_wait::none}};

constexpr word<outage_rule::way> ways[] = {{"closed", outage_rule::way::closed},
                                           {"open", outage_rule::way::open},
                                           {"local", outage_rule::way::local}};

constexpr word<refusal_body> bodies[] = {{"text", refusal_body::text},
                                         {"envelope", refusal_body::envelope},
                                         {"minimal", refusal_body::minimal},
                                         {"problem", refusal_body::problem}};

constexpr word<http::quota_form> forms[] = {{"x_ratelimit", http::quota_form::x_ratelimit},
                                            {"draft_11", http::quota_form::draft_11},
                                            {"both", http::quota_form::both}};

void read_preset(const table& from, limit_options& into)
{
    const auto given = from.text("preset");
    if (!given) return;
    if (auto found = http::preset::find(*given)) {
        into = std::move(found->client);
        return;
    }
    std::string allowed;
    for (const auto name : http::preset::names())
        allowed.append(allowed.empty() ? "" : ", ").append(name);
    from.reject("preset", "Invalid preset(" + bare(*given) + "), expect one of: " + allowed);
}

std::optional<std::uint64_t> read_max(const table& from, std::string_view key)
{
    const auto given = from.integer(key);
    if (given && *given < 0) from.reject(key, std::string(key) + " must not be negative");
    if (!given || *given < 0) return std::nullopt;
    return static_cast<std::uint64_t>(*given);
}

/// What is counted, and how many.
void read_what(const table& from, limit_options& into)
{
    read_word(from, "type", types, into.type);
    read_word(from, "tag", tags, into.tag);
    into.key = from.text("key", into.key);
    if (const auto max = read_max(from, "max")) into.max = max;
    if (!from.has("max") && !into.max) from.reject("max", "max is required");

    const bool rate = into.type == http::limit_type::rate;
    into.interval   = from.duration("interval", into.interval, rate ? 1ms : 0ms);
    read_word(from, "step", steps, into.step);

    if (from.has("weight"))
        from.warn("weight", "the weight of the limit plugin is no longer used: max is the number "
                            "of requests in any one interval");
}

void check_key(const table& from, const limit_options& of)
{
    const bool cookie = of.tag == http::limit_tag::cookie;
    const bool header = of.tag == http::limit_tag::header;
    if (!cookie && !header && of.tag != http::limit_tag::query) {
        if (!of.key.empty())
            from.warn("key",
                      "key is not read with tag = \"" + std::string(http::name(of.tag)) + "\"");
    } else if (of.key.empty()) {
        from.reject("key", "key is required for a header, cookie or query tag");
    } else if ((cookie || header) && !weir::detail::is_token(of.key)) {
        from.reject("key", "key is " + shown(of.key) + ", which is no name of a " +
                               (cookie ? "cookie" : "header"));
    }
}

/// What is answered, and what is told.
void read_answer(const table& from, limit_options& into)
{
    into.headers = from.flag("headers", into.headers);
    read_status(from, into.status);
    if (auto message = from.text("message")) into.message = std::move(message);
    read_word(from, "missing_key", missing_keys, into.missing_key);
    into.dry_run = from.flag("dry_run", into.dry_run);
    read_word(from, "retry_after", waits, into.retry_after);
    read_word(from, "body", bodies, into.body);
    read_word(from, "quota", forms, into.quota);
}

/// How it is counted, and where.
void read_counting(const table& from, limit_options& into)
{
    read_word(from, "policy", policies, into.policy);
    if (from.has("burst"))
        into.burst =
            from.integer("burst", std::uint64_t{1}, std::uint64_t{1}, std::uint64_t{INT64_MAX});
    into.store = from.text("store", into.store);
    if (into.store.empty()) from.reject("store", "store must not be empty");
    if (into.type == http::limit_type::inflight && into.store != "memory")
        from.reject("store", "store is " + shown(into.store) +
                                 "; an inflight limit is counted in "
                                 "memory only");

    read_word(from, "on_outage", ways, into.on_outage.then);
    const auto processes     = from.integer("processes", 1U, 1U, 1'000'000U);
    into.on_outage.processes = processes;
    const bool local         = into.on_outage.then == outage_rule::way::local;
    if (local && !from.has("processes"))
        from.reject("on_outage", "on_outage = \"local\" needs processes: how many share the limit");
    if (!local && from.has("processes"))
        from.warn("processes", "processes has no effect without on_outage = \"local\"");
}

void read_tiers(const table& from, limit_options& into)
{
    const auto tiers = from.list("tiers");
    if (tiers.empty()) return;
    if (into.type != http::limit_type::rate || into.tag != http::limit_tag::ip)
        from.reject("tiers", "tiers are for type = \"rate\" and tag = \"ip\" only");
    if (tiers.size() > http::any_limiter::most_tiers)
        from.reject("tiers",
                    "tiers must be at most " + std::to_string(http::any_limiter::most_tiers));
    into.tiers.clear();
    int narrower = into.ipv6_prefix;
    for (const auto& tier : tiers) {
        const auto prefix = tier.integer("prefix").value_or(0);
        const auto max    = read_max(tier, "max");
        if (!tier.has("prefix") || prefix < 1 || prefix >= narrower)
            tier.reject("prefix", "prefix must be 1 to " + std::to_string(narrower - 1) +
                                      ", each wider than the one before and than ipv6_prefix");
        else narrower = static_cast<int>(prefix);
        if (!tier.has("max")) tier.reject("max", "max is required");
        into.tiers.push_back({.prefix = narrower, .max = max.value_or(0)});
    }
}

void read_overrides(const table& from, limit_options& into)
{
    const auto overrides = from.child("overrides");
    if (!overrides.written()) return;
    if (into.tag == http::limit_tag::ip_ja4)
        from.reject("overrides", "overrides are for a tag of one value, not for ip_ja4");
    for (const auto& value : overrides.keys()) {
        if (into.tag == http::limit_tag::ip && !cidr::parse(value))
            overrides.reject(value, shown(value) + " is no address; with tag = \"ip\" overrides "
                                                   "have addresses");
        if (value.empty()) overrides.reject(value, "the empty value has no override");
        if (const auto max = read_max(overrides, value)) into.overrides[value] = *max;
    }
}

/// Whom it does not hold, or otherwise.
void read_clients(const table& from, limit_options& into)
{
    into.ipv6_prefix = from.integer("ipv6_prefix", into.ipv6_prefix, 1, 128);
    read_tiers(from, into);
    const auto allow = from.texts("allow");
    for (std::size_t i = 0; i < allow.size(); ++i)
        if (!cidr::parse(allow[i]))
            from.reject("allow", i,
                        "allow has " + shown(allow[i]) +
                            "; allowed are addresses and ranges such as 10.0.0.0/8");
    if (!allow.empty()) into.allow = allow;
    read_overrides(from, into);
}

void warn_of_idle_keys(const table& from, const limit_options& of)
{
    const auto idle = [&](std::string_view key, std::string_view without) {
        if (from.has(key))
            from.warn(key, std::string(key) + " has no effect without " + std::string(without));
    };
    if (of.type == http::limit_type::inflight)
        for (const auto* key : {"policy", "burst", "retry_after", "on_outage"})
            idle(key, "type = \"rate\"");
    else if (of.policy != http::limit_policy::gcra && of.policy != http::limit_policy::strict)
        idle("burst", "policy = \"gcra\" or \"strict\"");
    if (of.store == "memory" || of.store == "sketch")
        if (of.type == http::limit_type::rate) idle("on_outage", "a store that is shared");
    if (!of.headers) idle("quota", "headers = true");
}

/// Of what is left only the limit itself knows; it has no place in the file but the table's.
void check_whole(const table& from, const limit_options& of)
{
    try {
        http::check(of);
    } catch (const std::invalid_argument& wrong) {
        from.reject("", wrong.what());
    }
}

}  // namespace

std::optional<limit_options> read_limit(const table& from)
{
    const auto before = from.errors();
    static_cast<void>(from.text("category"));
    limit_options out;
    read_preset(from, out);
    out.name = from.name();
    read_what(from, out);
    check_key(from, out);
    read_answer(from, out);
    read_counting(from, out);
    read_clients(from, out);
    warn_of_idle_keys(from, out);
    if (from.errors() == before) check_whole(from, out);
    if (from.errors() != before) return std::nullopt;
    return out;
}

http::counters_options read_counters(const table& from)
{
    http::counters_options out;
    out.max_keys = from.integer("max_keys", out.max_keys, std::size_t{1}, std::size_t{100'000'000});
    out.max_inflight = from.integer("max_inflight", out.max_inflight, 1U, 1U << 20);
    out.sketch.depth =
        from.integer("sketch_rows", out.sketch.depth, std::size_t{1}, sketch_size::deepest);
    out.sketch.width =
        from.integer("sketch_columns", out.sketch.width, std::size_t{2}, std::size_t{1} << 24);
    return out;
}

void warn_without_ja4(const table& from, const limit_options& limit, std::string_view server)
{
    if (limit.tag != http::limit_tag::ja4 && limit.tag != http::limit_tag::ip_ja4) return;
    from.warn("tag", "tag = \"" + std::string(http::name(limit.tag)) + "\", but server " +
                         shown(server) +
                         " has no fingerprints: set ja4 = true there, "
                         "unless this limit is for its other servers");
}

}  // namespace weir::config
