// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a browser is shown. No script, no styles, nothing from elsewhere.

#include "weir/time.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace signin {

/// Asks for the address; `told` stands above it, if it is not empty.
[[nodiscard]] std::string ask_for_name(std::string_view told);

/// Asks for the code. The same for every name, whoever has it.
[[nodiscard]] std::string ask_for_code(std::string_view user, std::string_view ticket,
                                       std::string_view told);

[[nodiscard]] std::string welcome(std::string_view user);

/// Says until when, to the minute, if that is known.
[[nodiscard]] std::string too_many(weir::instant now, std::optional<weir::duration> wait);

[[nodiscard]] std::string unavailable();

/// Text that a page can hold, in attributes too.
[[nodiscard]] std::string escaped(std::string_view text);

}  // namespace signin
