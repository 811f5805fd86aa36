// SPDX-License-Identifier: BSL-1.0

// A program, a shared library that hides its symbols and a static library count in one store.
// Exits with 0 if they agree.

#include "parts.hpp"

#include <chrono>

int main()
{
    using namespace std::chrono_literals;
    weir::memory_store   counters({.max_keys = 100});
    const parts::limiter limit("parts", weir::fixed_window{.limit = 3, .window = 1min}, counters);

    const auto key = limit.digest(parts::who);
    if (in_shared::key_by(limit) != key || in_static::key_by(limit) != key) return 1;

    const auto at = weir::now();
    if (!in_shared::admits(limit, at) || !in_static::admits(limit, at) || !limit.admit(parts::who, at))
        return 2;
    return in_shared::admits(limit, at) || in_static::admits(limit, at) ? 3 : 0;
}
