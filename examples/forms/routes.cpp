// SPDX-License-Identifier: BSL-1.0

#include "routes.hpp"

#include <algorithm>

namespace forms {

namespace asio = boost::asio;

namespace {

struct path_and_query {
    std::string_view path  = {};
    std::string_view query = {};
};

/// Also of the absolute form that is sent to proxies (RFC 9112, section 3.2.2).
path_and_query split(std::string_view target)
{
    if (target.starts_with("http://")) {
        const auto slash = target.find('/', 7);
        target           = slash == target.npos ? "/" : target.substr(slash);
    }
    const auto mark = target.find('?');
    return {.path  = target.substr(0, mark),
            .query = mark == target.npos ? std::string_view() : target.substr(mark + 1)};
}

bool reads(http::verb method)
{
    return method == http::verb::get || method == http::verb::head;
}

asio::awaitable<response> at_once(response made)
{
    co_return made;
}

/// 503 while the database fails: nothing can be accepted then.
response health_of(const service& with)
{
    if (!with.state.good()) return storage_unavailable();
    return json_answer(http::status::ok, R"({"status":"ok"})");
}

}  // namespace

bool is_endpoint_id(std::string_view id) noexcept
{
    const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
    const auto fits  = [&](char c) { return plain(c) || c == '-' || c == '_'; };
    return id.size() >= 3 && id.size() <= 64 && std::ranges::all_of(id, fits) &&
           plain(id.front()) && plain(id.back());
}

response unknown_endpoint()
{
    return failure(http::status::not_found, "endpoint_not_found", "There is no such endpoint.");
}

response invalid_endpoint_id(http::status status)
{
    return failure(status, "invalid_endpoint_id",
                   "An endpoint id is 3 to 64 of a-z, 0-9, - and _, and begins and ends with a "
                   "letter or a digit.");
}

response inactive_endpoint()
{
    return failure(http::status::conflict, "endpoint_inactive",
                   "This endpoint does not take submissions.");
}

asio::awaitable<response> route(service& with, const request& from, const weir::peer& remote)
{
    const auto [path, query] = split(plain(from.target()));
    if (path.starts_with("/f/")) {
        const auto id = path.substr(3);
        if (from.method() == http::verb::post) return submit(with, from, remote, id);
        return at_once(reads(from.method()) ? form_page(with, id)
                                            : wrong_method("GET, HEAD, POST"));
    }
    if (path.starts_with("/api/")) return manage(with, from, path.substr(5), query);
    if (path != "/health")
        return at_once(failure(http::status::not_found, "not_found", "There is nothing here."));
    return at_once(reads(from.method()) ? health_of(with) : wrong_method("GET, HEAD"));
}

}  // namespace forms
