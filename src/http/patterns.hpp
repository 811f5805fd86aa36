// SPDX-License-Identifier: BSL-1.0
#pragma once

// Lists of regular expressions, and the answer that all restrictions give.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <re2/re2.h>
#include <re2/set.h>

#include "weir/http/restriction.hpp"

namespace weir::http {

/// Thread-safe. Linear in the text whatever the patterns are.
class patterns {
public:
    /// `option` names the list in the error of a pattern that is none.
    patterns(std::string_view option, const std::vector<std::string>& list);

    [[nodiscard]] bool match(std::string_view text) const;

private:
    RE2::Set                          all_;
    std::vector<std::unique_ptr<RE2>> each_;  // for when `all_` runs out of its memory
};

/// A refusal of this status and body, or none under dry_run, when `log` is told in its place.
[[nodiscard]] std::optional<answer> refused(const visit& who, const would_be_refusal& why,
                                            bool dry_run, shadow_log* log, instant at);

/// `deny`: whether one line of the header is listed. `allow`: whether one is not, or there is none.
/// Then `matched` is that line.
template <class Listed>
[[nodiscard]] bool stops(const request& from, std::string_view header, list_type type,
                         std::string& matched, const Listed& listed)
{
    bool any = false, stop = false;
    from.for_each_line(header, [&](std::string_view line) {
        any = true;
        if (stop || listed(line) != (type == list_type::deny)) return;
        stop = true;
        matched.assign(line);
    });
    return stop || (!any && type == list_type::allow);
}

}  // namespace weir::http
