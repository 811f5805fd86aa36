// SPDX-License-Identifier: BSL-1.0
#pragma once

// One round trip to a shared store: the asks that it carries, those for one key and cost merged
// into one row, rows in the order of their keys so that no two statements wait for each other in a
// circle.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weir/key.hpp"
#include "weir/remote/row.hpp"
#include "weir/remote/seat.hpp"

namespace weir::remote {

/// Not thread-safe. Memory for a whole trip is taken once.
class trip {
public:
    static constexpr std::size_t most_rows = 256;

    enum class kind : std::uint8_t { none, ask, set, sweep };

    struct part {
        row             asked = {};  ///< `times` is the sum over all callers.
        remote::outcome said  = {};
        remote::seats   seats = {};
    };

    trip() { parts_.reserve(most_rows), order_.reserve(most_rows); }

    /// Moves out of `waiting` what the next statement can carry: what its first seat needs, and who
    /// comes along. False if nobody waits.
    bool fill(seats& waiting);

    /// A trip that tidies up instead.
    void sweep() noexcept { clear(), carries = kind::sweep; }
    void clear() noexcept;

    [[nodiscard]] std::vector<part>&       parts() noexcept { return parts_; }
    [[nodiscard]] const std::vector<part>& parts() const noexcept { return parts_; }

    /// The part that is the `n`-th in the order of keys.
    [[nodiscard]] part&       sorted(std::size_t n) noexcept { return parts_[order_[n]]; }
    [[nodiscard]] const part& sorted(std::size_t n) const noexcept { return parts_[order_[n]]; }

    [[nodiscard]] const remote::manner* manner() const noexcept { return manner_; }

    kind             carries = kind::none;
    seat*            set     = nullptr;  ///< Who asked for the set; null if gone, or no set.
    seat::time_point until   = {};       ///< When the connection counts as dead.
    int              tries   = 0;

private:
    static constexpr std::size_t buckets = 2 * most_rows;

    void fill_with_set(seat& head);
    bool take(seat& one);
    void sort();

    /// The place of `who` in the table: of its part, or where its part would be.
    std::uint16_t& bucket_of(const key& who) noexcept;

    const remote::manner*              manner_ = nullptr;
    std::vector<part>                  parts_;
    std::vector<std::uint16_t>         order_;
    std::array<std::uint16_t, buckets> table_ = {};  // part + 1; 0 is free
};

}  // namespace weir::remote
