// SPDX-License-Identifier: BSL-1.0
#pragma once

// What the proxy says of its own when it cannot do what was asked.

#include "weir/http/refusal.hpp"

#include <array>
#include <string>

namespace proxy {

struct error_text {
    std::array<weir::refusal_header, 2> fields = {};
    std::string                         body   = {};
};

/// `502 Bad Gateway` as plain text, never kept by a cache.
[[nodiscard]] error_text error_page(int status);

}  // namespace proxy
