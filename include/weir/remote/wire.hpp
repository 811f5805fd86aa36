// SPDX-License-Identifier: BSL-1.0
#pragma once

// A connection to a shared store, as a line drives it.

#include <cstdint>

#include "weir/remote/trip.hpp"

namespace weir::remote {

/// Used by one thread at a time. No function blocks, whatever the other side does.
class wire {
public:
    enum class progress : std::uint8_t {
        busy,      ///< Nothing yet: wait until the descriptor is ready.
        answered,  ///< All parts of the trip have what was said.
        again,     ///< The store undid the statement and asks to be asked again.
        locked,    ///< The statement gave up waiting for somebody's lock, and did nothing.
        refused,   ///< The store would not run it; the connection is as good as before.
        undone,    ///< The connection is of no use any more, and the statement was not run.
        broken,    ///< The same, and nobody knows whether it was.
    };

    virtual ~wire() = default;

    /// Whether the other side is still there, as far as can be seen from here.
    virtual bool usable() noexcept = 0;

    /// Begins the trip. False if the connection is broken.
    virtual bool send(const trip& asked) noexcept = 0;

    /// Goes on with it; call it when the descriptor is ready.
    virtual progress advance(trip& asked) noexcept = 0;

    [[nodiscard]] virtual int  descriptor() const noexcept = 0;
    [[nodiscard]] virtual bool writes() const noexcept     = 0;  ///< Wait for room to write, too.
};

}  // namespace weir::remote
