// SPDX-License-Identifier: BSL-1.0

// An outside program with a limit from TOML: two at once, so the third is told 429. Exits with 0 if
// that is so, and a wrong number is told with its place.

#include <weir/config/limits.hpp>
#include <weir/extract/client.hpp>
#include <weir/http/limit.hpp>

int main()
{
    using weir::config::document;
    auto wrong = document::parse("[plugins.a]\ncategory = 'limit'\nmax = -1\n", "a.toml");
    if (weir::config::read_limit(wrong.root().child("plugins").child("a")) || wrong.ok()) return 1;
    if (wrong.errors().front().at.line != 3) return 1;

    auto file = document::parse("[plugins.a]\ncategory = 'limit'\nmax = 2\n", "a.toml");
    const auto written = weir::config::read_limit(file.root().child("plugins").child("a"));
    if (!written) return 1;

    weir::http::counters    counts({.max_keys = 100});
    const weir::http::limit limit(*written, counts);
    const weir::request     request({}, {.method = "GET", .target = "/"});
    const weir::client      client(*weir::address::parse("192.0.2.1"));
    weir::http::passage     through;
    const auto              at    = weir::now();
    const auto              admit = [&] { return limit.admit({request, client}, through, at); };
    const bool              twice = !admit() && !admit();
    const auto              third = admit();
    return twice && third && third->status == 429 ? 0 : 1;
}
