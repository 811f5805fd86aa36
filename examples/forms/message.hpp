// SPDX-License-Identifier: BSL-1.0
#pragma once

// Requests and responses as all routes of this server see them.

#include <string>
#include <string_view>

#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

namespace forms {

namespace http = boost::beast::http;

using request  = http::request<http::string_body>;
using response = http::response<http::string_body>;

/// Header values, methods and targets as the standard's own type.
template <class Text>
std::string_view plain(const Text& text)
{
    return {text.data(), text.size()};
}

/// A response with a body. Whether the connection is kept, and the body of a HEAD, are the
/// session's business.
response answer(http::status status, std::string_view content_type, std::string body);

inline response json_answer(http::status status, std::string body)
{
    return answer(status, "application/json", std::move(body));
}

/// `{"error":{"code":…,"message":…,"details":{…}}}`; `details` is the inside of an object.
response failure(http::status status, std::string_view code, std::string_view message,
                 std::string_view details = {});

/// 405, with the methods that there are.
response wrong_method(std::string_view allowed);

/// 503, for when the database does not keep what it should.
response storage_unavailable();

}  // namespace forms
