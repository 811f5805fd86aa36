// SPDX-License-Identifier: BSL-1.0
#pragma once

// The limits in front of what causes a mail: of one client, and of one address, however it is
// spelled.

#include "settings.hpp"

#include "weir/decision.hpp"
#include "weir/extract/client.hpp"

#include <cstdint>
#include <memory>
#include <string_view>

namespace signup {

/// Thread-safe. Both limits or none: who is refused by one has not used up the other. Whoever has
/// no address that can be believed shares one bucket with all such; counters that cannot be reached
/// refuse (503).
class gate {
public:
    virtual ~gate()                                           = default;
    virtual weir::decision admit(const weir::client& who, std::string_view canonical,
                                 std::uint64_t cost) noexcept = 0;
};

/// Counters in this process; on PostgreSQL in the database, where all processes on it share them.
std::unique_ptr<gate> make_gate(const settings& chosen);

}  // namespace signup
