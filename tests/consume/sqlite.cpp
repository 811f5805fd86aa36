// SPDX-License-Identifier: BSL-1.0

// An outside program on a file: sqlite FILE. Two a day, so the third is refused. Exits with 0 if
// that is so, and it stays so for another store on the file.

#include <weir/limiter.hpp>
#include <weir/sqlite/store.hpp>

#include <chrono>

int main(int argc, char** argv)
{
    using namespace std::chrono_literals;
    if (argc != 2) return 2;
    const weir::fixed_window two{.limit = 2, .window = 24h};
    const auto               at     = weir::sqlite::system_time();
    const auto               admits = [&] {
        weir::sqlite::store counters({.path = argv[1], .secret = "outside", .deadline = 10s});
        const weir::limiter per_ip("site.ip", two, counters);
        return bool(per_ip.admit("192.0.2.1", at));
    };
    const bool first = admits(), second = admits(), third = admits();
    return first && second && !third ? 0 : 1;
}
