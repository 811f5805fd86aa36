// SPDX-License-Identifier: BSL-1.0
#pragma once

// Counts of unboundedly many keys in fixed memory: never under the truth, sometimes over it
// (Cormode and Muthukrishnan, "An improved data stream summary: the count-min sketch and its
// applications", 2005; the conservative update is that of Estan and Varghese, 2002).

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "weir/invalid.hpp"
#include "weir/key.hpp"
#include "weir/pages.hpp"

namespace weir {

/// How large a sketch is: `depth` rows of `width` cells.
struct sketch_size {
    std::size_t width = 1024;
    std::size_t depth = 4;

    static constexpr std::size_t deepest = 8;

    /// The width at which a key is over-counted with at most `error` probability (0 … 1, both
    /// excluded) while `keys` distinct ones are counted. Throws std::invalid_argument.
    [[nodiscard]] static sketch_size for_keys(std::uint64_t keys, double error,
                                              std::size_t depth = 4);

    /// The share of keys that are over-counted while `keys` distinct ones are: a key is when each
    /// of its cells is shared, (1 - (1 - 1/width)^(keys - 1))^depth. Conservative updates stay
    /// below it.
    [[nodiscard]] double wrong_share(std::uint64_t keys) const noexcept;

    /// Empty if the size can be made.
    [[nodiscard]] std::string complaint() const;

    /// The cell of `who` in `row`: the rows' hashes are high + row × low (Kirsch and Mitzenmacher,
    /// "Less hashing, same performance", 2006) of a digest that is keyed already. Each is mixed
    /// once more: else two keys that meet in two rows meet in the others too, and errors are up to
    /// twenty times what `wrong_share` says.
    [[nodiscard]] constexpr std::size_t cell(const key& who, std::size_t row) const noexcept
    {
        __extension__ using wide = unsigned __int128;
        auto hash                = who.high + row * (who.low | 1);
        hash                     = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15;
        return row * width + static_cast<std::size_t>(wide{hash} * width >> 64);
    }

    friend constexpr bool operator==(const sketch_size&, const sketch_size&) = default;
};

/// A sketch of plain counts. Cells hold at the top of their type instead of wrapping. Thread-safe,
/// lock-free; an update or an estimate is O(depth). Use either `add` and `subtract`, or `raise`:
/// what is raised cannot be subtracted again.
///
/// Conservative updates of one key from several threads lose nothing. Each takes one cell as its
/// base, raises the others to its result first, and commits by swapping the base from the very
/// value that it read. Of two that succeed, the later to commit finds its base unchanged since it
/// read it, and the earlier had raised that cell before: so it began at or above the earlier's
/// result. A thread that dies in between leaves an over-count of its own units, never less.
class count_min_sketch {
public:
    using count = std::uint32_t;

    /// Throws std::invalid_argument for a size without cells.
    explicit count_min_sketch(sketch_size size);

    /// Adds to all cells of the key. Returns the estimate after it.
    count add(const key& who, count units) noexcept;

    /// Conservative update: raises only the cells that would fall below the new estimate, which
    /// errs ten to a thousand times less often. Returns the estimate after it.
    count raise(const key& who, count units) noexcept;

    /// Takes back what `add` added; never below zero.
    void subtract(const key& who, count units) noexcept;

    /// At least what was counted for the key.
    [[nodiscard]] count estimate(const key& who) const noexcept;

    /// Back to zero, cell by cell; what is counted meanwhile may or may not stay.
    void clear() noexcept;

    [[nodiscard]] const sketch_size& size() const noexcept { return size_; }
    [[nodiscard]] std::size_t        bytes() const noexcept { return cells_.bytes(); }

private:
    using cell = std::atomic<count>;

    static constexpr count sum(count a, count b) noexcept
    {
        return a > std::numeric_limits<count>::max() - b ? std::numeric_limits<count>::max()
                                                         : a + b;
    }

    static void raise_to(cell& at, count least) noexcept;

    sketch_size size_;
    pages<cell> cells_;
};

// ---------------------------------------------------------------------------------------------

inline sketch_size sketch_size::for_keys(std::uint64_t keys, double error, std::size_t depth)
{
    if (keys == 0 || !(error > 0 && error < 1))
        detail::invalid(
            "sketch_size: wants at least one key and an error between 0 and 1, both excluded");
    // error = (1 - (1 - 1/w)^(k-1))^d, solved for w
    const auto shared = std::pow(error, 1.0 / static_cast<double>(depth));
    const auto empty =
        std::log1p(-shared) / static_cast<double>(std::max<std::uint64_t>(keys - 1, 1));
    return {.width = static_cast<std::size_t>(std::ceil(-1.0 / std::expm1(empty))), .depth = depth};
}

inline double sketch_size::wrong_share(std::uint64_t keys) const noexcept
{
    if (keys <= 1) return 0;
    const auto others = static_cast<double>(keys - 1);
    const auto shared = -std::expm1(others * std::log1p(-1.0 / static_cast<double>(width)));
    return std::pow(shared, static_cast<double>(depth));
}

inline std::string sketch_size::complaint() const
{
    if (width > 0 && depth > 0 && depth <= deepest) return "";
    return "sketch: width is " + std::to_string(width) + " and depth " + std::to_string(depth) +
           "; at least 1 cell and 1 to 8 rows are allowed";
}

inline count_min_sketch::count_min_sketch(sketch_size size)
    : size_(size), cells_([&] {
          if (const auto wrong = size.complaint(); !wrong.empty()) detail::invalid(wrong);
          return size.width * size.depth;
      }())
{
}

inline auto count_min_sketch::add(const key& who, count units) noexcept -> count
{
    auto lowest = std::numeric_limits<count>::max();
    for (std::size_t row = 0; row < size_.depth; ++row) {
        auto& at   = cells_[size_.cell(who, row)];
        auto  seen = at.load(std::memory_order_relaxed);
        while (!at.compare_exchange_weak(seen, sum(seen, units), std::memory_order_acq_rel)) {}
        lowest = std::min(lowest, sum(seen, units));
    }
    return lowest;
}

inline auto count_min_sketch::raise(const key& who, count units) noexcept -> count
{
    for (;;) {
        auto* base = &cells_[size_.cell(who, 0)];
        auto  seen = base->load(std::memory_order_acquire);
        for (std::size_t row = 1; row < size_.depth; ++row) {
            auto&      at = cells_[size_.cell(who, row)];
            const auto is = at.load(std::memory_order_acquire);
            if (is < seen) base = &at, seen = is;
        }
        const auto next = sum(seen, units);
        for (std::size_t row = 0; row < size_.depth; ++row)
            if (auto& at = cells_[size_.cell(who, row)]; &at != base) raise_to(at, next);
        if (base->compare_exchange_strong(seen, next)) return next;
    }
}

inline void count_min_sketch::raise_to(cell& at, count least) noexcept
{
    auto seen = at.load(std::memory_order_relaxed);
    while (seen < least && !at.compare_exchange_weak(seen, least)) {}
}

inline void count_min_sketch::subtract(const key& who, count units) noexcept
{
    for (std::size_t row = 0; row < size_.depth; ++row) {
        auto& at   = cells_[size_.cell(who, row)];
        auto  seen = at.load(std::memory_order_relaxed);
        while (!at.compare_exchange_weak(seen, seen > units ? seen - units : 0,
                                         std::memory_order_acq_rel)) {}
    }
}

inline auto count_min_sketch::estimate(const key& who) const noexcept -> count
{
    auto lowest = std::numeric_limits<count>::max();
    for (std::size_t row = 0; row < size_.depth; ++row)
        lowest = std::min(lowest, cells_[size_.cell(who, row)].load(std::memory_order_acquire));
    return lowest;
}

inline void count_min_sketch::clear() noexcept
{
    for (std::size_t i = 0; i < cells_.size(); ++i) cells_[i].store(0, std::memory_order_relaxed);
}

}  // namespace weir
