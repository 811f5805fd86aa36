// SPDX-License-Identifier: BSL-1.0

#include "message.hpp"

#include "weir/http/refusal.hpp"

#include <utility>

namespace forms {

response answer(http::status status, std::string_view content_type, std::string body)
{
    response made(status, 11);
    made.set(http::field::content_type, {content_type.data(), content_type.size()});
    made.set(http::field::cache_control, "no-store");
    made.body() = std::move(body);
    return made;
}

response failure(http::status status, std::string_view code, std::string_view message,
                 std::string_view details)
{
    std::string body = R"({"error":{"code":)";
    weir::append_json_string(body, code);
    body += R"(,"message":)";
    weir::append_json_string(body, message);
    body.append(R"(,"details":{)").append(details).append("}}}");
    return json_answer(status, std::move(body));
}

response wrong_method(std::string_view allowed)
{
    auto made = failure(http::status::method_not_allowed, "method_not_allowed",
                        "This path does not take that method.");
    made.set(http::field::allow, {allowed.data(), allowed.size()});
    return made;
}

response storage_unavailable()
{
    return failure(http::status::service_unavailable, "storage_unavailable",
                   "Temporarily unavailable.");
}

}  // namespace forms
