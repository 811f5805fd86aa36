// SPDX-License-Identifier: BSL-1.0
#pragma once

// A limit as an operator writes it down: names of what the library can do, and numbers.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/extract/missing_key.hpp"
#include "weir/http/quota_headers.hpp"
#include "weir/http/refusal.hpp"
#include "weir/store.hpp"
#include "weir/time.hpp"

namespace weir::http {

enum class limit_type : std::uint8_t {
    rate,      ///< Requests in an interval.
    inflight,  ///< Requests in progress at once.
};

/// What requests are counted by.
enum class limit_tag : std::uint8_t {
    ip,      ///< The client's address; all without one share a count.
    header,  ///< The value of the header `key`.
    cookie,
    query,
    ja4,       ///< The TLS fingerprint: one count for each kind of client, whatever its address.
    ip_ja4,    ///< Address and fingerprint together; without a fingerprint the address alone.
    location,  ///< The location's name: all requests to it share a count.
};

/// When a limit is asked.
enum class limit_step : std::uint8_t {
    request,         ///< As the request arrives.
    proxy_upstream,  ///< Before it goes upstream: what a cache answers is not counted.
};

enum class limit_policy : std::uint8_t {
    sliding,  ///< sliding_window: at most 2·max − 1 in any span of the interval.
    fixed,    ///< fixed_window: max in each interval on the clock.
    gcra,     ///< A burst, and after it max an interval evenly.
    strict,   ///< gcra::at_most: never more than max in any span of the interval.
};

/// What Retry-After tells.
enum class told_wait : std::uint8_t {
    interval,  ///< The interval, whatever the wait.
    exact,     ///< The wait after which the request is admitted if the client sends no other.
    none,      ///< Nothing: there is no Retry-After.
};

/// A limit for all addresses of a wider IPv6 prefix, beside that for each.
struct limit_tier {
    int           prefix = 48;
    std::uint64_t max    = 0;
};

/// Every member that has no meaning for the type, tag or policy chosen is left alone, but those of
/// which it is said that they are an error. The texts of errors name the option and its value.
struct limit_options {
    std::string                  name     = {};  ///< Finds its counts again by it after a reload.
    limit_type                   type     = limit_type::rate;
    limit_tag                    tag      = limit_tag::ip;
    std::string                  key      = {};  ///< Required for header, cookie and query.
    std::optional<std::uint64_t> max      = {};  ///< Required. 0 refuses everything.
    duration                     interval = std::chrono::seconds(10);  ///< At least 1 ms.
    limit_step                   step     = limit_step::request;
    bool                         headers  = false;  ///< Tell the client its budget.
    int                          status   = 429;    ///< 400 to 599.
    std::optional<std::string>   message  = {};     ///< In place of the default body's text.
    weir::missing_key            missing_key = weir::missing_key::pass;
    bool                         dry_run     = false;  ///< Refuse nothing, log what would be.

    limit_policy                 policy      = limit_policy::sliding;
    std::optional<std::uint64_t> burst       = {};  ///< gcra: by default max. strict: half of it.
    told_wait                    retry_after = told_wait::interval;

    /// "memory", "sketch" (4 rows of 1024), or what was registered with `counters::add`. Requests
    /// in progress are always counted exactly and in the process: any other is an error there.
    std::string store     = "memory";
    outage_rule on_outage = fail_closed;  ///< Of a registered store.

    int                                  ipv6_prefix = 64;  ///< 1 to 128.
    std::vector<limit_tier>              tiers       = {};  ///< For rate by ip; wider than that.
    std::vector<std::string>             allow       = {};  ///< CIDRs: not limited, not counted.
    std::map<std::string, std::uint64_t> overrides   = {};  ///< Another max for single values.

    refusal_body body  = refusal_body::text;  ///< text: `Plugin limit, exceed limit 11/10`.
    quota_form   quota = quota_form::x_ratelimit;
};

/// Throws std::invalid_argument for a required option that is missing and for a number out of its
/// range. What only a store or an extractor can tell, they tell when the limit is made.
void check(const limit_options& options);

/// The names as they are written in a configuration.
[[nodiscard]] std::string_view name(limit_type of) noexcept;
[[nodiscard]] std::string_view name(limit_tag of) noexcept;
[[nodiscard]] std::string_view name(limit_step of) noexcept;
[[nodiscard]] std::string_view name(limit_policy of) noexcept;

}  // namespace weir::http
