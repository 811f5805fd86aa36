// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a request says under one name (of a header, a cookie, a query parameter): bytes to count by,
// or why there are none.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/key.hpp"

namespace weir {

/// Why a request has no value to count by.
enum class absence : std::uint8_t {
    missing,    ///< Nothing of this name, or nothing behind it.
    ambiguous,  ///< Several values, and nothing says which one the application takes.
    malformed,  ///< CR, LF or NUL within: no field value of RFC 9110 section 5.5.
    too_long,   ///< More than is read.
};

/// The reason's name, for logs.
[[nodiscard]] constexpr std::string_view name(absence why) noexcept;

/// The value under one name, or none. A value, and a subject: hand it to `admit`. All that are none
/// are one subject, which no value shares since an empty one is missing; `step_for`
/// (extract/missing_key.hpp) says whether they are to be counted at all.
///
/// It borrows from its request unless the value had to be decoded: do not keep it longer.
class field {
public:
    /// The longest value that is decoded, in bytes. It is kept inside, so nothing is allocated.
    static constexpr std::size_t room = 1024;

    /// None.
    constexpr explicit field(absence why = absence::missing) noexcept : why_(why) {}

    /// Borrows the value. An empty one is missing, one of more than `most` bytes too long.
    constexpr field(std::string_view value, std::size_t most) noexcept
        : why_(value.empty()         ? std::optional(absence::missing)
               : value.size() > most ? std::optional(absence::too_long)
                                     : std::nullopt),
          borrowed_(why_ ? std::string_view() : value)
    {
    }

    // Only the bytes in use are copied: the rest was never written.
    constexpr field(const field& other) noexcept { *this = other; }
    constexpr field& operator=(const field& other) noexcept;

    constexpr explicit operator bool() const noexcept { return !why_; }

    /// None if there is a value.
    [[nodiscard]] constexpr std::optional<absence> why() const noexcept { return why_; }

    /// What is counted; empty without a value. Borrowed from the request or from this field.
    [[nodiscard]] constexpr std::string_view bytes() const noexcept
    {
        return kept_ == 0 ? borrowed_ : std::string_view(decoded_.data(), kept_);
    }

    /// Adds a decoded byte of a value that is not borrowed; one too many makes it too long.
    constexpr void append(char byte) noexcept;

private:
    std::optional<absence> why_;
    std::string_view       borrowed_;
    std::size_t            kept_ = 0;  // bytes of decoded_ in use
    std::array<char, room> decoded_;
};

static_assert(subject_part<field>);

// ---------------------------------------------------------------------------------------------

constexpr std::string_view name(absence why) noexcept
{
    switch (why) {
    case absence::missing: return "missing";
    case absence::ambiguous: return "ambiguous";
    case absence::malformed: return "malformed";
    case absence::too_long: return "too_long";
    }
    return "unnamed";
}

constexpr field& field::operator=(const field& other) noexcept
{
    if (this == &other) return *this;
    why_      = other.why_;
    borrowed_ = other.borrowed_;
    kept_     = other.kept_;
    std::copy_n(other.decoded_.begin(), kept_, decoded_.begin());
    return *this;
}

constexpr void field::append(char byte) noexcept
{
    if (kept_ == room) *this = field(absence::too_long);
    if (why_ == absence::too_long) return;
    why_.reset();
    decoded_[kept_++] = byte;
}

namespace detail {

/// Whether RFC 9110 section 5.5 forbids the value: with such bytes one reader sees one line and
/// the next sees two.
constexpr bool is_malformed(std::string_view value) noexcept
{
    return std::ranges::any_of(value, [](char c) { return c == '\r' || c == '\n' || c == '\0'; });
}

}  // namespace detail

}  // namespace weir
