// SPDX-License-Identifier: BSL-1.0
#pragma once

// One request as limits see it, and what they said to it.

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/extract/client.hpp"
#include "weir/extract/client_ip.hpp"
#include "weir/extract/request.hpp"
#include "weir/http/limits.hpp"

namespace reference {

/// The peer is the client.
inline weir::client_ip no_proxy()
{
    return weir::client_ip(weir::client_ip_options{.warn = nullptr});
}

/// A request from an address, with header lines and a target. It stays where it is made.
class caller {
public:
    explicit caller(std::string_view               address = "192.0.2.1",
                    std::vector<weir::header_line> lines   = {},
                    std::string_view target = "/api/items", std::string_view ja4 = {},
                    const weir::client_ip& source = no_proxy())
        : lines_(std::move(lines)),
          request_(lines_, {.peer = weir::peer::parse(address), .method = "GET", .target = target}),
          client_(source(request_)), ja4_(ja4)
    {
    }
    caller(const caller&)            = delete;
    caller& operator=(const caller&) = delete;

    [[nodiscard]] weir::http::visit visit() const
    {
        return {.from = request_, .client = client_, .location = "api", .ja4 = ja4_};
    }

private:
    std::vector<weir::header_line> lines_;
    weir::request                  request_;
    weir::client                   client_;
    std::string_view               ja4_;
};

/// What a request is told whose response is done at once; nothing if it goes on.
inline std::optional<weir::http::answer> ask(const weir::http::limit& limit, const caller& who,
                                             weir::instant at)
{
    weir::http::passage through;
    return limit.admit(who.visit(), through, at);
}

/// How many of `asks` requests go on at that instant.
inline int passed(const weir::http::limit& limit, const caller& who, int asks, weir::instant at)
{
    int count = 0;
    for (int i = 0; i < asks; ++i) count += !ask(limit, who, at);
    return count;
}

/// The value of a field, if it is there.
inline std::optional<std::string> field_of(const std::vector<weir::refusal_header>& fields,
                                           std::string_view                         name)
{
    const auto found = std::ranges::find(fields, name, &weir::refusal_header::name);
    return found == fields.end() ? std::nullopt : std::optional(found->value);
}

}  // namespace reference
