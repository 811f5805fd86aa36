// SPDX-License-Identifier: BSL-1.0
#pragma once

// Where requests go: an upstream has one origin or several, which take turns. An origin is known by
// its address, so that its figures and its open connections outlive a configuration.

#include "net.hpp"
#include "settings.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace proxy {

/// One address. Thread-safe.
struct origin {
    tcp::endpoint at = {};
    std::size_t   id = 0;  ///< From 0, dense: the index of what a thread keeps for it.

    std::atomic<std::int64_t>  connections = 0;  ///< Open at present, idle ones among them.
    std::atomic<std::uint64_t> requests    = 0;
    std::atomic<std::uint64_t> failures    = 0;  ///< Of connecting, and responses that broke off.
};

/// All addresses that were ever named. Thread-safe.
class origins {
public:
    [[nodiscard]] std::shared_ptr<origin>              at(const tcp::endpoint& where);
    [[nodiscard]] std::vector<std::shared_ptr<origin>> all() const;

private:
    mutable std::mutex                               mutex_;
    std::map<tcp::endpoint, std::shared_ptr<origin>> known_;
};

/// Thread-safe.
class upstream {
public:
    /// Looks names up, and waits for that. Throws std::invalid_argument for one that has no
    /// address.
    upstream(upstream_settings chosen, origins& known);

    [[nodiscard]] const upstream_settings& chosen() const noexcept { return chosen_; }
    [[nodiscard]] std::size_t              size() const noexcept { return origins_.size(); }

    /// The next one in turn.
    [[nodiscard]] const std::shared_ptr<origin>& next() const noexcept
    {
        const auto turn = origins_.size() == 1 ? 0 : turn_.fetch_add(1, std::memory_order_relaxed);
        return origins_[turn % origins_.size()];
    }

private:
    upstream_settings                    chosen_;
    std::vector<std::shared_ptr<origin>> origins_;
    mutable std::atomic<std::size_t>     turn_ = 0;
};

}  // namespace proxy
