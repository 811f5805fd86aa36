// SPDX-License-Identifier: BSL-1.0
#pragma once

// A sliding estimate from two count-min sketches of atomics, one for the window that runs and one
// for the window before, as a proxy would build it: add to one, read both.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace rivals {

class two_sketches {
public:
    explicit two_sketches(std::size_t width) : width_(width), cells_(2 * depth * width) {}

    /// The estimate of the two windows together. Each sketch has hashes of its own, one for each
    /// row.
    double observe(std::string_view who)
    {
        std::int64_t current = INT64_MAX, previous = INT64_MAX;
        for (std::size_t row = 0; row < depth; ++row)
            current = std::min(current, cell(who, row).fetch_add(1, std::memory_order_relaxed) + 1);
        for (std::size_t row = depth; row < 2 * depth; ++row)
            previous = std::min(previous, cell(who, row).load(std::memory_order_relaxed));
        return static_cast<double>(current) + 0.5 * static_cast<double>(previous);
    }

private:
    static constexpr std::size_t depth = 4;

    std::atomic<std::int64_t>& cell(std::string_view who, std::size_t row)
    {
        return cells_[row * width_ + hash(who, row) % width_];
    }

    /// Two multiplications over sixteen bytes at a time: about as fast as a keyed hash can be.
    static std::uint64_t hash(std::string_view who, std::uint64_t seed)
    {
        std::uint64_t state = seed * 0x9e3779b97f4a7c15 + who.size();
        for (std::size_t i = 0; i + 8 <= who.size(); i += 8) {
            std::uint64_t word = 0;
            std::memcpy(&word, who.data() + i, 8);
            __extension__ const auto product =
                static_cast<unsigned __int128>(state ^ word) * 0xa0761d6478bd642f;
            state = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
        }
        return state;
    }

    std::size_t                            width_;
    std::vector<std::atomic<std::int64_t>> cells_;
};

}  // namespace rivals
