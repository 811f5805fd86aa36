// SPDX-License-Identifier: BSL-1.0
#pragma once

// Warnings of a configuration are told when they are new, not again by every reload.

#include <mutex>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "weir/config/document.hpp"

namespace weir::config {

/// What was told of the configuration that is in force. Keep one for as long as the process lives
/// and hand it the warnings of each load. A finding is the same one if it is of the same table of
/// the same file and says the same, wherever it stands now. Thread-safe; holds the findings of the
/// last load only, so one that was mended and comes back is told again.
class told_once {
public:
    /// Those of `now` that the load before did not have, each once. O(n log n).
    [[nodiscard]] std::vector<finding> fresh(std::span<const finding> now)
    {
        const std::lock_guard held(guard_);
        std::vector<finding>  out;
        std::set<said>        present;
        for (const auto& one : now) {
            said key(one.file, one.table, one.text);
            if (present.insert(key).second && !told_.contains(key)) out.push_back(one);
        }
        told_.swap(present);
        return out;
    }

private:
    using said = std::tuple<std::string, std::string, std::string>;

    std::mutex     guard_;
    std::set<said> told_;
};

}  // namespace weir::config
