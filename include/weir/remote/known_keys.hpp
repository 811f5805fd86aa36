// SPDX-License-Identifier: BSL-1.0
#pragma once

// The digest of remote/digest.hpp with a memory: a subject seen lately costs a short hash instead
// of an HMAC, so that a flood from few subjects is cheap.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/key.hpp"
#include "weir/remote/digest.hpp"
#include "weir/remote/recall.hpp"
#include "weir/time.hpp"

namespace weir::remote {

/// Makes the keys that remote::digest makes. What it remembers it finds by 128 bits of SipHash-1-3
/// under a seed of this process, so nobody outside can prepare two subjects that meet there; two
/// that meet by chance are as likely as two that share a key. Keeps no subject. Thread-safe.
class known_keys {
public:
    /// Remembers about `entries` subjects, rounded up to a power of two; 40 bytes each, taken now.
    /// Throws std::invalid_argument for a name of more than 65,535 bytes, and std::bad_alloc.
    known_keys(std::string_view secret, std::uint8_t policy_id, std::string_view name,
               duration window, std::size_t entries)
        : digest_(secret, policy_id, name, window),
          nearby_(hash_seed::of_process(), policy_id, name, window), known_(entries)
    {
    }

    /// O(bytes of the subject); allocates at most once in each thread's life, as remote::digest.
    [[nodiscard]] key operator()(const subject& who) const noexcept
    {
        const auto near = nearby_(who);
        key        far;
        if (!known_.find(near, far)) [[unlikely]] {
            far = digest_(who);
            known_.keep(near, far);
        }
        return far;
    }

    [[nodiscard]] std::size_t bytes() const noexcept { return sizeof(*this) + known_.bytes(); }

private:
    remote::digest      digest_;
    weir::digest        nearby_;
    mutable recall<key> known_;
};

}  // namespace weir::remote
