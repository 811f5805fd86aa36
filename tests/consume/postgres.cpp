// SPDX-License-Identifier: BSL-1.0

// An outside program that links the store on PostgreSQL. There is no server where it looks: exits
// with 0 if it is told so.

#include <weir/limiter.hpp>
#include <weir/postgres/store.hpp>

#include <chrono>

int main()
{
    using namespace std::chrono_literals;
    try {
        weir::postgres::store counters({.conninfo = "host=/nowhere", .key_secret = "outside"});
        const weir::limiter   per_ip("site.ip", weir::gcra{.limit = 2, .window = 24h}, counters);
        return per_ip.admit("192.0.2.1") ? 1 : 2;
    } catch (const weir::postgres::unreachable&) {
        return 0;
    }
}
