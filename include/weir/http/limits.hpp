// SPDX-License-Identifier: BSL-1.0
#pragma once

// The limits of one location, one after the other.

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "weir/http/limit.hpp"

namespace weir::http {

/// Immutable, hence thread-safe. Each limit counts on its own, in order: a request that the second
/// refuses has spent one of the first. Put the one first that a flood must not get past.
class limits {
public:
    limits() = default;
    explicit limits(std::vector<std::shared_ptr<const limit>> all);

    /// Asks those of this step until one refuses. See `limit::admit`.
    [[nodiscard]] std::optional<answer> admit(limit_step step, const visit& who, passage& through,
                                              instant at) const;

    /// As `admit`, for a server that must not wait. See `limit::admit_then`; these limits stay
    /// until `done` is called, too.
    void admit_then(limit_step step, const visit& who, passage& through, limit::told done) const;

    /// Whether `admit` may wait at this step.
    [[nodiscard]] bool answers_later(limit_step step) const noexcept;

    /// Whether there is any limit of this step.
    [[nodiscard]] bool any(limit_step step) const noexcept;

    [[nodiscard]] const std::vector<std::shared_ptr<const limit>>& all() const noexcept
    {
        return all_;
    }

private:
    std::vector<std::shared_ptr<const limit>> all_;
};

}  // namespace weir::http
