// SPDX-License-Identifier: BSL-1.0
#pragma once

// What leaves the process instead of a subject: 16 bytes of HMAC-SHA-256 under the operator's
// secret. Processes with one secret make one key of a subject; without the secret nobody can tell
// whose it is, or prepare two subjects that share one. With an empty secret it is SHA-256: any
// list of addresses can then be tried against a stolen store.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "weir/key.hpp"
#include "weir/time.hpp"

namespace weir::remote {

using hash_bytes = std::array<unsigned char, 32>;

/// HMAC-SHA-256 (RFC 2104, FIPS 180-4) of `bytes` under `secret`; SHA-256 if it is empty. O(bytes);
/// thread-safe; ends the program if libcrypto has no memory.
[[nodiscard]] hash_bytes hash(std::string_view secret, std::string_view bytes) noexcept;

/// As 64 digits.
[[nodiscard]] std::string hex(const hash_bytes& hash);

/// Turns the subjects of one limit into keys, over the layout of `feed_limit` and `feed_subject`.
/// Both pads and the part that all subjects share are hashed once, here. Immutable, hence
/// thread-safe.
class digest {
public:
    /// Throws std::invalid_argument for a name of more than 65,535 bytes.
    digest(std::string_view secret, std::uint8_t policy_id, std::string_view name, duration window);
    ~digest();
    digest(digest&&) noexcept;
    digest& operator=(digest&&) noexcept;

    /// O(bytes of the subject); allocates at most once in each thread's life. Ends the program if
    /// libcrypto has no memory: any other key would be somebody else's.
    [[nodiscard]] key operator()(const subject& who) const noexcept;

private:
    struct begun;
    std::unique_ptr<const begun> begun_;
};

}  // namespace weir::remote
