// SPDX-License-Identifier: BSL-1.0
#pragma once

// Random bytes of the system as digits.

#include <array>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>

#include <sys/random.h>

namespace signin {

[[nodiscard]] inline std::string hex_of(std::span<const unsigned char> bytes)
{
    std::string text;
    for (const auto byte : bytes) {
        text += "0123456789abcdef"[byte >> 4];
        text += "0123456789abcdef"[byte & 15];
    }
    return text;
}

/// `count` random bytes, at most 32, as twice as many digits. Throws std::runtime_error if the
/// system has none. getrandom of so few never comes back short.
[[nodiscard]] inline std::string random_text(std::size_t count)
{
    std::array<unsigned char, 32> bytes{};
    if (::getrandom(bytes.data(), count, 0) != static_cast<ssize_t>(count))
        throw std::runtime_error("the system has no random bytes");
    return hex_of(std::span(bytes).first(count));
}

}  // namespace signin
