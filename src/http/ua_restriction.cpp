// SPDX-License-Identifier: BSL-1.0

#include "patterns.hpp"

#include <utility>

namespace weir::http {

ua_restriction::ua_restriction(ua_restriction_options options, shadow_log* log)
    : options_(std::move(options)),
      list_(std::make_shared<const patterns>("ua_restriction: ua_list", options_.ua_list)),
      log_(log)
{
}

std::optional<answer> ua_restriction::admit(const visit& who, instant at) const
{
    std::string matched;
    const auto  listed = [&](std::string_view line) { return list_->match(line); };
    if (!stops(who.from, "User-Agent", options_.type, matched, listed)) return std::nullopt;
    return refused(who, {.status = 403, .reason = options_.message, .matched = matched},
                   options_.dry_run, log_, at);
}

}  // namespace weir::http
