// SPDX-License-Identifier: BSL-1.0
#pragma once

// Arrays in PostgreSQL's binary form (src/backend/utils/adt/arrayfuncs.c, array_recv): a head, then
// each element after its length; numbers with the highest byte first.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "weir/key.hpp"

namespace weir::postgres {

/// Type numbers of the server's catalog (src/include/catalog/pg_type.dat), fixed for ever.
enum class type : std::uint32_t {
    bigint  = 20,
    text    = 25,
    uuid    = 2950,
    bigints = 1016,
    texts   = 1009,
    uuids   = 2951
};

template <class Number>
[[nodiscard]] Number swapped(Number n) noexcept
{
    if constexpr (std::endian::native == std::endian::big) return n;
    else if constexpr (sizeof n == 8)
        return static_cast<Number>(__builtin_bswap64(static_cast<std::uint64_t>(n)));
    else return static_cast<Number>(__builtin_bswap32(static_cast<std::uint32_t>(n)));
}

template <class Number>
void append(std::string& to, Number n)
{
    const auto wire = swapped(n);
    char       bytes[sizeof wire];
    std::memcpy(bytes, &wire, sizeof wire);
    to.append(bytes, sizeof bytes);
}

/// Bytes before the first number of an array, and of each number with its length.
inline constexpr std::size_t array_head = 20, array_number = 12;

/// Begins an array of one dimension in `to`, in place of what was there.
inline void begin_array(std::string& to, type element, std::size_t count)
{
    to.clear();
    append(to, std::uint32_t{count > 0});
    append(to, std::uint32_t{0});  // no nulls
    append(to, static_cast<std::uint32_t>(element));
    if (count == 0) return;
    append(to, static_cast<std::uint32_t>(count));
    append(to, std::uint32_t{1});  // where the indexes begin
}

inline void append_element(std::string& to, std::int64_t n)
{
    append(to, std::uint32_t{8});
    append(to, n);
}

inline void append_element(std::string& to, const key& who)
{
    append(to, std::uint32_t{16});
    append(to, who.high);
    append(to, who.low);
}

inline void append_element(std::string& to, std::string_view text)
{
    append(to, static_cast<std::uint32_t>(text.size()));
    to.append(text);
}

/// A number of a row that was sent in binary form.
[[nodiscard]] inline std::uint64_t read_number(const char* from) noexcept
{
    std::uint64_t wire = 0;
    std::memcpy(&wire, from, sizeof wire);
    return swapped(wire);
}

}  // namespace weir::postgres
