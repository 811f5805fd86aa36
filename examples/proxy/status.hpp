// SPDX-License-Identifier: BSL-1.0
#pragma once

// The page of figures for an operator, in JSON. No value of a request is on it: digests stand for
// those whom a dry run would refuse most.

#include "site.hpp"

#include <string>

namespace proxy {

[[nodiscard]] std::string status_page(state& of, const site& now);

}  // namespace proxy
