// SPDX-License-Identifier: BSL-1.0
#pragma once

// `type/subtype; name=value; name="quoted value"` (RFC 9110 section 8.3), also as multipart parts
// use it for Content-Disposition.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace forms {

struct media_type {
    std::string type = {};  ///< In lower case.

    /// Names in lower case, values unquoted.
    std::vector<std::pair<std::string, std::string>> parameters = {};

    [[nodiscard]] const std::string* parameter(std::string_view name) const;
};

/// None if it is not written like one. Linear in the text.
std::optional<media_type> parse_media_type(std::string_view text);

std::string      lower_case(std::string_view text);
std::string_view trimmed(std::string_view text);  ///< Without spaces and tabs at both ends.

}  // namespace forms
