// SPDX-License-Identifier: BSL-1.0
#pragma once

// Counters in fixed memory for any number of keys: an estimate that may be too high and is never
// too low. For limits where a rare wrong refusal costs less than a table of all keys.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "weir/count_min_sketch.hpp"
#include "weir/invalid.hpp"
#include "weir/key.hpp"
#include "weir/store.hpp"
#include "weir/store/enrolled.hpp"
#include "weir/store/state_sketch.hpp"
#include "weir/time.hpp"
#include "weir/warning.hpp"

namespace weir {

struct sketch_options {
    sketch_size size   = {};          ///< Of each enrolled limiter; see sketch_size::for_keys.
    instant (*clock)() = &weir::now;  ///< Asked where the caller hands in no instant.
    /// Of the keys; by default the process's own, random.
    std::optional<hash_seed> seed = std::nullopt;
    warning_listener warn = &warn_on_stderr;  ///< Told once of each warning (docs/warnings.md).
};

/// The sketch of one limiter.
template <policy Policy>
class sketch_counters {
public:
    sketch_counters(std::string_view name, const Policy& limit, const sketch_size& size,
                    const hash_seed& seed)
        : digest_(seed, Policy::id, name, limit.window), cells_(limit, size)
    {
    }

    [[nodiscard]] key digest(const subject& who) const noexcept { return digest_(who); }
    reply<Policy>     answer(const ask<Policy>& question, instant at) noexcept
    {
        return cells_.answer(question, at);
    }

    /// The share of keys over-counted now, from the cells in use. O(width × depth).
    [[nodiscard]] double present_error(const Policy& limit, instant at) const noexcept
    {
        return cells_.present_error(limit, at);
    }
    [[nodiscard]] std::size_t bytes() const noexcept { return sizeof(*this) + cells_.bytes(); }

private:
    weir::digest         digest_;
    state_sketch<Policy> cells_;
};

/// Thread-safe, lock-free; must outlive the limiters on it. All decisions are `basis::estimated`:
/// give_back and forget do nothing. Of `n` distinct keys in two windows, `size.wrong_share(n)` are
/// over-counted at most.
class sketch_store {
public:
    template <policy Policy>
    using enrolment = sketch_counters<Policy>*;

    static constexpr bool on_callers_clock = true;

    /// Throws std::invalid_argument for a size without cells or of more than eight rows.
    explicit sketch_store(const sketch_options& options = {});

    /// Throws std::invalid_argument for a limit that a cell cannot hold (as memory_store).
    template <policy Policy>
    enrolment<Policy> enrol(std::string_view name, const Policy& limit, outage_rule = fail_closed);

    template <policy Policy>
    [[nodiscard]] key digest(sketch_counters<Policy>* limiter, const subject& who) const noexcept
    {
        return limiter->digest(who);
    }
    template <policy Policy>
    [[nodiscard]] bool holds(sketch_counters<Policy>*, const Policy& limit) const noexcept
    {
        return fits_slot(limit);
    }
    template <policy Policy>
    reply<Policy> answer(sketch_counters<Policy>* limiter, const ask<Policy>& question,
                         instant at) noexcept
    {
        return limiter->answer(question, at);
    }

    [[nodiscard]] instant     now() const noexcept { return options_.clock(); }
    [[nodiscard]] std::size_t bytes() const { return sizeof(*this) + enrolled_.bytes(); }

private:
    sketch_options            options_;
    hash_seed                 seed_;
    enrolled<sketch_counters> enrolled_;
};

// ---------------------------------------------------------------------------------------------

inline sketch_store::sketch_store(const sketch_options& options)
    : options_(options), seed_(options.seed ? *options.seed : hash_seed::of_process()),
      enrolled_(options.warn)
{
    if (const auto wrong = options.size.complaint(); !wrong.empty()) detail::invalid(wrong);
}

template <policy Policy>
auto sketch_store::enrol(std::string_view name, const Policy& limit, outage_rule)
    -> enrolment<Policy>
{
    check_slot(name, limit);
    return &enrolled_.find_or_make(name, limit, [&] {
        return std::make_unique<sketch_counters<Policy>>(name, limit, options_.size, seed_);
    });
}

}  // namespace weir
