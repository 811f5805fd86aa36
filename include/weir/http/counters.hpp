// SPDX-License-Identifier: BSL-1.0
#pragma once

// Where the counts of configured limits live while configurations come and go.

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "weir/count_min_sketch.hpp"
#include "weir/http/any_limiter.hpp"
#include "weir/inflight.hpp"

namespace weir::http {

struct counters_options {
    std::size_t max_keys =
        100'000;  ///< Counted exactly, for each rate limit and each of its tiers.

    /// Requests in progress at once that each inflight limit has room for, of all keys together; a
    /// limit with a larger max has room for max. Memory is taken for so many, 88 bytes each.
    std::uint32_t max_inflight = 16'384;

    sketch_size sketch = {};  ///< For store = "sketch": 4 rows of 1024.
};

/// A limit that is made with the same name, policy, interval and store as one that still stands
/// finds its counts, so that a reload fills no bucket; another max applies at once to what is
/// counted. Counts go when the last limit on them goes, so that reloads do not grow memory: make
/// the limits of the new configuration before the old ones are dropped. Thread-safe. Must outlive
/// the making of limits only; what was registered must outlive the limits on it.
class counters {
public:
    /// Throws std::invalid_argument for max_keys or max_inflight of 0 and a sketch without cells.
    explicit counters(counters_options options = {});

    /// Registers a store under a name for `limit_options::store`. Borrowed. Throws
    /// std::invalid_argument for "memory", "sketch", and a name that is taken.
    template <class Store>
    void add(std::string name, Store& store);

    /// For `limit`: the counts of a rate under each of its numbers. Throws std::invalid_argument
    /// for a store that is not known and numbers that the store cannot hold.
    [[nodiscard]] std::unique_ptr<any_limiter> limiter(const rate_plan& plan,
                                                       std::string_view store);

    /// For `limit`: requests in progress, with places for `room` or, if that is more, for `max` of
    /// all keys together; one that has fewer is not found. `max` is the limit of each key that a
    /// new one starts with; one that is found keeps its own until told (inflight::set_limits).
    [[nodiscard]] std::shared_ptr<inflight> places(std::string_view name, std::uint32_t max,
                                                   std::uint32_t room);

    /// Counts that are known: those that stand, and those that went since the last limit was made.
    [[nodiscard]] std::size_t size() const;

    [[nodiscard]] const counters_options& options() const noexcept { return options_; }

private:
    using maker = std::function<std::unique_ptr<any_limiter>(const rate_plan&)>;

    void add_maker(std::string name, maker make);
    template <class Kept, class Make>
    std::shared_ptr<Kept> find_or_make(std::string identity, Make&& make);

    counters_options                           options_;
    mutable std::mutex                         mutex_;
    std::map<std::string, maker, std::less<>>  registered_;
    std::map<std::string, std::weak_ptr<void>> kept_;
};

// ---------------------------------------------------------------------------------------------

template <class Store>
void counters::add(std::string name, Store& store)
{
    add_maker(std::move(name),
              [&store](const rate_plan& plan) { return make_limiter(plan, store, nullptr); });
}

}  // namespace weir::http
