// SPDX-License-Identifier: BSL-1.0
#pragma once

// The address as text, as applications behind an edge that replaces X-Real-IP and X-Forwarded-For
// have counted it: for moving over counters and logs that hold that form. Everything else wants
// `client_ip`, which reads addresses and groups IPv6.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "weir/extract/request.hpp"
#include "weir/invalid.hpp"

namespace weir {

struct edge_text_options {
    /// Says that the edge overwrites both headers whatever a client sends in them. Without it any
    /// client chooses its own key, so there is no default.
    bool edge_replaces_headers = false;
};

/// X-Real-IP; where that is blank, the first entry of X-Forwarded-For, trimmed; where both are
/// missing "unknown", one key for all. At most 60 bytes of it. Of several lines the first counts.
/// Thread-safe; O(bytes of the header).
class edge_text {
public:
    static constexpr std::size_t most_bytes = 60;

    /// Throws std::invalid_argument unless `edge_replaces_headers` is said.
    explicit edge_text(const edge_text_options& options)
    {
        if (!options.edge_replaces_headers)
            detail::invalid("edge_text: edge_replaces_headers is false; only behind an edge that "
                            "replaces X-Real-IP and X-Forwarded-For may the first entry be "
                            "believed, and then true is to be said");
    }

    [[nodiscard]] std::string operator()(const request& from) const
    {
        auto found = trimmed(first_line(from, "X-Real-IP"));
        if (found.empty()) {
            const auto list = first_line(from, "X-Forwarded-For");
            found           = trimmed(std::string_view(list).substr(0, list.find(',')));
            if (list.empty()) found = "unknown";
        }
        found.resize(std::min(found.size(), most_bytes));
        return found;
    }

private:
    static std::string first_line(const request& from, std::string_view name)
    {
        std::string value;
        bool        seen = false;
        from.for_each_line(name, [&](std::string_view line) {
            if (!seen) value = line;
            seen = true;
        });
        return value;
    }

    static std::string trimmed(std::string_view text)
    {
        constexpr std::string_view blank = " \t\r\n\f\v";
        const auto                 first = text.find_first_not_of(blank);
        if (first == text.npos) return {};
        return std::string(text.substr(first, text.find_last_not_of(blank) - first + 1));
    }
};

}  // namespace weir
