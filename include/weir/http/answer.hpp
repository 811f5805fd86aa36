// SPDX-License-Identifier: BSL-1.0
#pragma once

// A response that a filter gives in the application's place.

#include <string>
#include <vector>

#include "weir/http/refusal.hpp"

namespace weir::http {

/// Status, header fields and body. The framing is the server's own business, and so are the quota
/// fields: they go on every response of the exchange, this one included, see `passage::quota`.
/// A HEAD is answered with the same fields and without the body (RFC 9110 section 9.3.2).
struct answer {
    int                         status = 429;
    std::vector<refusal_header> fields = {};  ///< Names in static storage.
    std::string                 body   = {};
};

}  // namespace weir::http
