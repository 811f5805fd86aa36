// SPDX-License-Identifier: BSL-1.0
#pragma once

// The two limits in front of every form, on whichever store the settings name.

#include "settings.hpp"

#include "weir/decision.hpp"
#include "weir/extract/client.hpp"
#include "weir/time.hpp"

#include <memory>
#include <string_view>

namespace forms {

/// Thread-safe. Decisions name their limiter, `ip` or `endpoint`, which is the scope that a refused
/// client is told. Nothing throws.
class gate {
public:
    virtual ~gate() = default;

    /// The present instant by the clock of the counters: that of the host, if processes share them.
    [[nodiscard]] virtual weir::instant now() const noexcept = 0;

    virtual weir::decision source(const weir::client& who, weir::instant at) noexcept = 0;
    virtual weir::decision endpoint(std::string_view id, weir::instant at) noexcept = 0;

    /// Whether an answer may wait for a disk: then it is not asked on a thread that serves others.
    [[nodiscard]] virtual bool may_wait() const noexcept = 0;
};

/// Counters in this process, or in the database, where all processes of this host share them.
std::unique_ptr<gate> make_gate(const settings& chosen);

}  // namespace forms
