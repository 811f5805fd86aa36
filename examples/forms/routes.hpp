// SPDX-License-Identifier: BSL-1.0
#pragma once

// What is answered to a request whose body has been read. Which function answers is decided in
// routes.cpp; each of the others is a file of its own.

#include "message.hpp"
#include "service.hpp"

#include "weir/extract/request.hpp"

#include <string_view>

#include <boost/asio/awaitable.hpp>

namespace forms {

/// The one entrance. All that is borrowed must stay until the response is there.
boost::asio::awaitable<response> route(service& with, const request& from,
                                       const weir::peer& remote);

/// POST /f/{id}: source limit, endpoint, endpoint limit, body, disk; in this order.
boost::asio::awaitable<response> submit(service& with, const request& from,
                                        const weir::peer& remote, std::string_view id);

/// Everything below /api/; `rest` is the path behind it.
boost::asio::awaitable<response> manage(service& with, const request& from, std::string_view rest,
                                        std::string_view query);

/// GET /f/{id}: a form to try the endpoint with, in plain HTML.
response form_page(const service& with, std::string_view id);

/// 3 to 64 of a-z, 0-9, - and _, the first and the last a letter or digit.
bool is_endpoint_id(std::string_view id) noexcept;

response unknown_endpoint();
response invalid_endpoint_id(http::status status);
response inactive_endpoint();

}  // namespace forms
