// SPDX-License-Identifier: BSL-1.0
#pragma once

// The secret of keys, codes and cookies, where nobody has set one.

#include <string>

namespace signin {

/// The one that is kept in the folder; makes it at first, for its owner alone to read. Processes
/// that start together find one. Throws std::invalid_argument if the folder cannot be written to,
/// or what is kept there is none.
[[nodiscard]] std::string kept_secret(const std::string& folder);

}  // namespace signin
