// SPDX-License-Identifier: BSL-1.0
#pragma once

// A text that is fit for the parser, whose release 3.3 does not survive all that is no TOML: it
// takes memory and stack for each dot of a key, and its behaviour is undefined on many characters
// that are not ASCII where it looks for blanks (its issues 190 and 295). So it gets ASCII only.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/config/document.hpp"

namespace weir::config {

/// Keys nest by their dots: a line outside of strings and comments has no more of them.
inline constexpr std::size_t most_dots = 32;

/// A text that means the same, or what is wrong with it.
struct screened {
    /// From this place of `text` on, its line is so many columns longer than what was written.
    struct shift {
        place         from = {};
        std::uint32_t by   = 0;
    };

    std::string        text   = {};
    std::vector<shift> shifts = {};
    place              at     = {};
    std::string        fault  = {};  ///< Empty: `text` is fit.

    /// The place that was written, of one in `text`. O(log n).
    [[nodiscard]] place written(const place& in_text) const noexcept;
};

/// Linear.
[[nodiscard]] screened screen(std::string_view from);

}  // namespace weir::config
