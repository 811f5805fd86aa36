// SPDX-License-Identifier: BSL-1.0

#include "patterns.hpp"
#include "weir/extract/cidr.hpp"
#include "weir/extract/client_ip.hpp"
#include "weir/invalid.hpp"

#include <utility>

namespace weir::http {

ip_restriction::ip_restriction(ip_restriction_options options, shadow_log* log)
    : options_(std::move(options)), log_(log)
{
    for (std::size_t i = 0; i < options_.ip_list.size(); ++i) {
        const auto range = cidr::parse(options_.ip_list[i]);
        if (!range)
            detail::invalid("ip_restriction: ip_list[" + std::to_string(i) + "] is " +
                            detail::shown(options_.ip_list[i]) +
                            "; allowed is an address or a range such as 10.0.0.0/8");
        prefixes_.emplace(range->network().family(), range->prefix());
        networks_.emplace(range->prefix(), range->network());
    }
}

bool ip_restriction::listed(const address& one) const noexcept
{
    for (const auto& [family, prefix] : prefixes_)
        if (family == one.family() && networks_.contains({prefix, one.masked(prefix)})) return true;
    return false;
}

std::optional<answer> ip_restriction::admit(const visit& who, instant at) const
{
    const auto& from = who.client.address();
    if (!from)
        return refused(who, {.status = 400, .reason = "The address of the client is not known"},
                       options_.dry_run, log_, at);
    if (listed(*from) != (options_.type == list_type::deny)) return std::nullopt;
    const auto text = to_string(*from);
    return refused(who, {.status = 403, .reason = options_.message, .matched = text},
                   options_.dry_run, log_, at);
}

}  // namespace weir::http
