// SPDX-License-Identifier: BSL-1.0
#pragma once

// Lengths of time as people write them: `1h30m`, `90s`, `500ms`. All of a text is read or nothing.

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "weir/time.hpp"

namespace weir::config {

/// Whole numbers with d (24 hours), h, m, s, ms, us or ns, the larger unit first, each once, and
/// nothing before, between or after them. None for all else: no sign, no space, no fraction, no
/// capital, no number without a unit, no more than 2^63 - 1 nanoseconds (292 years). O(length).
[[nodiscard]] inline std::optional<duration> parse_duration(std::string_view text) noexcept;

/// What is wrong with a text that `parse_duration` does not read, to follow it in a sentence:
/// `has a number without a unit`. Empty for one that it reads. Static storage.
[[nodiscard]] inline std::string_view duration_fault(std::string_view text) noexcept;

/// What may be written instead, as one clause.
inline constexpr std::string_view duration_grammar =
    "whole numbers with d, h, m, s, ms, us or ns, as in 1h30m or 500ms";

/// The text that `parse_duration` reads as `length`, in the largest units: 5400 s is `1h30m`.
/// Nothing is `0s`; a negative length has no text and is `0s` too.
[[nodiscard]] inline std::string duration_text(duration length);

// ---------------------------------------------------------------------------------------------

namespace detail {

struct time_unit {
    std::string_view name  = {};
    std::int64_t     ticks = 0;
};

inline constexpr time_unit time_units[] = {
    {"d", 86'400'000'000'000},
    {"h", 3'600'000'000'000},
    {"m", 60'000'000'000},
    {"s", 1'000'000'000},
    {"ms", 1'000'000},
    {"us", 1'000},
    {"ns", 1},
};

struct duration_reading {
    duration         length = {};
    std::string_view fault  = {};
};

/// Takes one number and its unit from the front of `text` and adds them to `sum`; `next` is the
/// first unit that may still come.
inline std::string_view take_part(std::string_view& text, std::int64_t& sum,
                                  const time_unit*& next) noexcept
{
    constexpr std::string_view figures = "0123456789";
    const auto                 digits  = std::min(text.find_first_not_of(figures), text.size());
    const auto                 length  = std::min(text.find_first_of(figures, digits), text.size());
    if (digits == 0) return "does not start with a number";
    if (digits == text.size()) return "has a number without a unit";
    if (text[digits] == '.' || text[digits] == ',') return "has a fraction";

    const auto word = text.substr(digits, length - digits);
    const auto unit = std::find_if(std::begin(time_units), std::end(time_units),
                                   [&](const time_unit& one) { return one.name == word; });
    if (unit == std::end(time_units)) return "has an unknown unit";
    if (unit < next) return "has a unit twice or after a smaller one";
    next = unit + 1;

    std::int64_t count = 0;
    const auto   read  = std::from_chars(text.data(), text.data() + digits, count);
    if (read.ec != std::errc{} || __builtin_mul_overflow(count, unit->ticks, &count) ||
        __builtin_add_overflow(sum, count, &sum))
        return "is longer than 292 years";
    text.remove_prefix(length);
    return {};
}

inline duration_reading read_duration(std::string_view text) noexcept
{
    if (text.empty()) return {.fault = "is empty"};
    if (text.front() == '-' || text.front() == '+') return {.fault = "has a sign"};
    if (text.find_first_of(" \t\r\n") != text.npos) return {.fault = "has a space"};
    std::int64_t     sum  = 0;
    const time_unit* next = std::begin(time_units);
    while (!text.empty())
        if (const auto fault = take_part(text, sum, next); !fault.empty()) return {.fault = fault};
    return {.length = duration(sum)};
}

}  // namespace detail

inline std::optional<duration> parse_duration(std::string_view text) noexcept
{
    const auto reading = detail::read_duration(text);
    return reading.fault.empty() ? std::optional(reading.length) : std::nullopt;
}

inline std::string_view duration_fault(std::string_view text) noexcept
{
    return detail::read_duration(text).fault;
}

inline std::string duration_text(duration length)
{
    std::string out;
    auto        rest = std::max<std::int64_t>(length.count(), 0);
    for (const auto& unit : detail::time_units) {
        if (rest < unit.ticks) continue;
        out.append(std::to_string(rest / unit.ticks)).append(unit.name);
        rest %= unit.ticks;
    }
    return out.empty() ? "0s" : out;
}

}  // namespace weir::config
