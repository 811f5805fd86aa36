// SPDX-License-Identifier: BSL-1.0
#pragma once

// Which peers are proxies of the operator's own, so that what they write in a header is believed.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "weir/extract/cidr.hpp"
#include "weir/extract/request.hpp"
#include "weir/invalid.hpp"

namespace weir {

/// Entries as those of `client_ip_options::trusted`: addresses, ranges, `private` and `unix`.
/// Immutable, hence thread-safe.
class trusted_peers {
public:
    /// Throws std::invalid_argument, naming `whose` option is wrong, the entry and what is allowed.
    trusted_peers(std::string_view whose, const std::vector<std::string>& entries);

    /// Linear in the number of ranges. A peer that is unknown is never trusted.
    [[nodiscard]] bool hold(const peer& one) const noexcept;
    [[nodiscard]] bool hold(const address& one) const noexcept;

    [[nodiscard]] bool empty() const noexcept { return !unix_ && ranges_.empty(); }
    [[nodiscard]] const std::vector<cidr>& ranges() const noexcept { return ranges_; }

private:
    std::vector<cidr> ranges_;
    bool              unix_ = false;
};

// ---------------------------------------------------------------------------------------------

namespace detail {

/// What an operator wrote, fit for one line of a log.
inline std::string shown(std::string_view text)
{
    std::string out = "\"";
    for (const char c : text.substr(0, 60)) out += c < ' ' || c == 0x7f ? '?' : c;
    return out + (text.size() > 60 ? "…\"" : "\"");
}

}  // namespace detail

inline trusted_peers::trusted_peers(std::string_view whose, const std::vector<std::string>& entries)
{
    for (std::size_t i = 0; i < entries.size(); ++i) {
        if (entries[i] == "unix") {
            unix_ = true;
        } else if (entries[i] == "private") {
            ranges_.insert(ranges_.end(), private_networks().begin(), private_networks().end());
        } else if (const auto range = cidr::parse(entries[i])) {
            ranges_.push_back(*range);
        } else {
            detail::invalid(std::string(whose) + ": trusted[" + std::to_string(i) + "] is " +
                            detail::shown(entries[i]) +
                            "; allowed is an address, a range such as "
                            "10.0.0.0/8 or 2001:db8::/32, \"unix\" or \"private\"");
        }
    }
}

inline bool trusted_peers::hold(const peer& one) const noexcept
{
    if (one.is_unix_socket()) return unix_;
    if (one.is_unknown() || one.address()->is_unspecified()) return false;
    return hold(*one.address());
}

inline bool trusted_peers::hold(const address& one) const noexcept
{
    return std::ranges::any_of(ranges_, [&](const cidr& range) { return range.contains(one); });
}

}  // namespace weir
