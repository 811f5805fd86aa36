// SPDX-License-Identifier: BSL-1.0

#include "patterns.hpp"
#include "weir/invalid.hpp"

#include <utility>

namespace weir::http {

ja4_restriction::ja4_restriction(ja4_restriction_options options, shadow_log* log)
    : options_(std::move(options)),
      list_(std::make_shared<const patterns>("ja4_restriction: ja4_list", options_.ja4_list)),
      log_(log)
{
    if (options_.ja4_list.empty())
        detail::invalid("ja4_restriction: ja4_list is empty; one pattern or more is required");
}

std::optional<answer> ja4_restriction::admit(const visit& who, instant at) const
{
    // A list may hold `.*` and still has no word for a connection without a fingerprint.
    const bool listed = !who.ja4.empty() && list_->match(who.ja4);
    if (listed != (options_.type == list_type::deny)) return std::nullopt;
    return refused(who, {.status = 403, .reason = options_.message, .matched = who.ja4},
                   options_.dry_run, log_, at);
}

}  // namespace weir::http
