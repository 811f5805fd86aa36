// SPDX-License-Identifier: BSL-1.0
#pragma once

// Random input of property tests: committed seeds, and how far to go with them.

#include <cstdint>
#include <cstdlib>
#include <random>

namespace reference {

using generator = std::mt19937_64;

/// In [least, most]. The same on every standard library, unlike std::uniform_int_distribution.
template <class Number>
Number random_number(generator& random, Number least, Number most)
{
    const auto span = static_cast<std::uint64_t>(most) - static_cast<std::uint64_t>(least);
    const auto by   = span == ~std::uint64_t{0} ? random() : random() % (span + 1);
    return static_cast<Number>(static_cast<std::uint64_t>(least) + by);
}

inline bool chance(generator& random, unsigned percent) { return random() % 100 < percent; }

/// WEIR_STEPS of the environment, or `otherwise`.
inline std::uint64_t steps(std::uint64_t otherwise)
{
    const char* const wanted = std::getenv("WEIR_STEPS");
    return wanted == nullptr ? otherwise : std::strtoull(wanted, nullptr, 10);
}

}  // namespace reference
