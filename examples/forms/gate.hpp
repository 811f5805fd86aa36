// SPDX-License-Identifier: BSL-1.0
#pragma once

// The two limits in front of every form, on whichever store the settings name.

#include "settings.hpp"

#include "weir/decision.hpp"
#include "weir/extract/client.hpp"
#include "weir/time.hpp"

#include <memory>
#include <string_view>

#include <boost/asio/awaitable.hpp>

namespace forms {

/// Thread-safe. Decisions name their limiter, `ip` or `endpoint`, which is the scope that a refused
/// client is told. Nothing throws but for want of memory.
class gate {
public:
    template <class Result>
    using awaitable = boost::asio::awaitable<Result>;

    virtual ~gate() = default;

    /// The present instant by the clock of this host. Counters on a server have their own, and then
    /// a decision's instant is the one that counts.
    [[nodiscard]] virtual weir::instant now() const noexcept = 0;

    /// Whether an answer is waited for. Then the two that return an awaitable are asked, on which
    /// no thread waits that serves others; else the two that return a decision.
    [[nodiscard]] virtual bool waits() const noexcept = 0;

    virtual weir::decision source(const weir::client& who, weir::instant at) noexcept = 0;
    virtual weir::decision endpoint(std::string_view id, weir::instant at) noexcept   = 0;

    virtual awaitable<weir::decision> source_later(const weir::client& who, weir::instant at) = 0;
    virtual awaitable<weir::decision> endpoint_later(std::string_view id, weir::instant at)   = 0;
};

/// Counters in this process; or in the database, where all processes on it share them.
std::unique_ptr<gate> make_gate(const settings& chosen);

}  // namespace forms
