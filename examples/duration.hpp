// SPDX-License-Identifier: BSL-1.0
#pragma once

// Lengths of time as people write them on a command line.

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/time.hpp"

/// `1h30m`, `90s`, `500ms`: whole numbers with h, m, s or ms, the larger unit first, each once, and
/// nothing before, between or after them. Nothing for all else, and for more than the type holds.
inline std::optional<weir::duration> duration_from(std::string_view text)
{
    constexpr struct {
        std::string_view name;
        std::int64_t     ticks;
    } units[] = {
        {"h", 3'600'000'000'000}, {"m", 60'000'000'000}, {"s", 1'000'000'000}, {"ms", 1'000'000}};

    if (text.empty()) return std::nullopt;
    std::int64_t sum = 0;
    for (const auto& unit : units) {
        const auto digits = std::min(text.find_first_not_of("0123456789"), text.size());
        const auto next   = std::min(text.find_first_of("0123456789", digits), text.size());
        if (digits == 0 || text.substr(digits, next - digits) != unit.name) continue;

        std::int64_t count = 0;
        if (std::from_chars(text.data(), text.data() + digits, count).ec != std::errc{} ||
            __builtin_mul_overflow(count, unit.ticks, &count) ||
            __builtin_add_overflow(sum, count, &sum))
            return std::nullopt;
        text.remove_prefix(next);
    }
    return text.empty() ? std::optional(weir::duration(sum)) : std::nullopt;
}
