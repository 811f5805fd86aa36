// SPDX-License-Identifier: BSL-1.0
#pragma once

// The tables [plugins.NAME] as filters.

#include "site.hpp"

#include <vector>

namespace proxy {

/// Reads all of them. What is wrong is told to the document, and that plugin left out.
[[nodiscard]] std::vector<plugin> read_plugins(weir::config::document& from, state& lasting);

}  // namespace proxy
