// SPDX-License-Identifier: BSL-1.0

// An outside program: two a minute, so the third is refused. Exits with 0 if that is so.

#include "weir/weir.hpp"

#include <chrono>

int main()
{
    using namespace std::chrono_literals;
    weir::memory_store counters({.max_keys = 100});
    weir::limiter      per_ip("site.ip", weir::fixed_window{.limit = 2, .window = 1min}, counters);

    const auto at     = weir::now();
    const bool first  = bool(per_ip.admit("192.0.2.1", at));
    const bool second = bool(per_ip.admit("192.0.2.1", at));
    const bool third  = bool(per_ip.admit("192.0.2.1", at));
    return first && second && !third ? 0 : 1;
}
