// SPDX-License-Identifier: BSL-1.0
#pragma once

// CRC32c, for the checksum of PROXY protocol headers: they are short, so the processor's own
// instruction for it is not worth a second way.

#include <array>
#include <cstdint>
#include <string_view>

namespace weir::detail {

/// The CRC32c (reflected polynomial 0x82f63b78, RFC 3720 section 12.1) of what it was fed. A value;
/// linear, about a nanosecond a byte.
class crc32c {
public:
    constexpr crc32c& feed(std::string_view bytes) noexcept
    {
        for (const char c : bytes) {
            rest_ ^= static_cast<unsigned char>(c);
            rest_ = rest_ >> 4 ^ steps[rest_ & 0xf];
            rest_ = rest_ >> 4 ^ steps[rest_ & 0xf];
        }
        return *this;
    }
    [[nodiscard]] constexpr std::uint32_t value() const noexcept { return ~rest_; }

private:
    /// What four bits do: 64 bytes instead of the usual kilobyte, so that it stays in the cache.
    static constexpr auto steps = [] {
        std::array<std::uint32_t, 16> out{};
        for (std::uint32_t i = 0; i < out.size(); ++i) {
            out[i] = i;
            for (int bit = 0; bit < 4; ++bit) out[i] = out[i] >> 1 ^ (out[i] & 1) * 0x82f63b78U;
        }
        return out;
    }();

    std::uint32_t rest_ = ~std::uint32_t{0};
};

static_assert(crc32c().feed("123456789").value() == 0xe3069283U);  // the customary check value

}  // namespace weir::detail
