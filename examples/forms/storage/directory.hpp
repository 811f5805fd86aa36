// SPDX-License-Identifier: BSL-1.0
#pragma once

// The endpoints, in memory: a submission looks its endpoint up here, so that guessing ids costs no
// disk. There are as many as the operator made. It learns of changes by their revision.

#include "storage/records.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

namespace forms {

/// Thread-safe.
class directory {
public:
    [[nodiscard]] std::optional<endpoint> find(std::string_view id) const
    {
        const std::shared_lock lock(mutex_);
        const auto             found = known_.find(id);
        if (found == known_.end()) return std::nullopt;
        return found->second;
    }

    /// Whether submissions to it are taken; none if there is no such endpoint.
    [[nodiscard]] std::optional<bool> active(std::string_view id) const
    {
        const std::shared_lock lock(mutex_);
        const auto             found = known_.find(id);
        if (found == known_.end()) return std::nullopt;
        return found->second.active;
    }

    /// Up to `most`, by id, after this one.
    [[nodiscard]] std::vector<endpoint> list(std::string_view after, std::size_t most) const
    {
        const std::shared_lock lock(mutex_);
        std::vector<endpoint>  found;
        for (auto at = known_.upper_bound(after); at != known_.end() && found.size() < most; ++at)
            found.push_back(at->second);
        return found;
    }

    /// Takes over what changed since the last time, by whichever process.
    void refresh(records& on)
    {
        const std::lock_guard one_at_a_time(refreshing_);
        const auto            changes = on.endpoints_since(revision_);
        if (changes.empty()) return;

        const std::lock_guard lock(mutex_);
        for (const auto& each : changes) known_.insert_or_assign(each.id, each);
        revision_ = changes.back().revision;
    }

private:
    mutable std::shared_mutex                    mutex_;
    std::map<std::string, endpoint, std::less<>> known_;
    std::mutex                                   refreshing_;
    std::int64_t                                 revision_ = 0;
};

}  // namespace forms
