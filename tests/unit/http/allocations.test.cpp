// SPDX-License-Identifier: BSL-1.0

// The operators of the whole program are counted here; all other tests run with them too.

#include "catch.hpp"
#include "reference/http_caller.hpp"
#include "reference/one_client.hpp"

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

thread_local std::size_t allocations = 0;

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes)
{
    ++allocations;
    if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
    throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept
{
    ++allocations;
    return std::malloc(bytes == 0 ? 1 : bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept
{
    std::free(memory);
}

using namespace std::chrono_literals;
using reference::caller;
using reference::t;
using weir::http::limit_options;
using weir::http::limit_tag;
using weir::http::limit_type;

TEST_CASE("a request that goes on allocates nothing, whatever it is counted by", "[http][limit]")
{
    limit_options options{.name    = "a name of more than fifteen bytes",
                          .key     = "X-Api-Key",
                          .max     = 1'000,
                          .headers = true,
                          .quota   = weir::http::quota_form::both};
    options.type   = GENERATE(limit_type::rate, limit_type::inflight);
    options.tag    = GENERATE(limit_tag::ip, limit_tag::header, limit_tag::cookie, limit_tag::query,
                              limit_tag::ja4, limit_tag::ip_ja4);
    options.policy = GENERATE(weir::http::limit_policy::sliding, weir::http::limit_policy::gcra);
    options.allow  = {"10.0.0.0/8"};
    if (options.tag != limit_tag::ip && options.tag != limit_tag::ip_ja4)
        options.overrides = {{"somebody", 5}};
    if (options.type == limit_type::rate && options.tag == limit_tag::ip)
        options.tiers = {{.prefix = 48, .max = 1'000}};

    weir::http::counters    where({.max_keys = 100, .max_inflight = 100});
    const weir::http::limit limit(options, where);
    const char* const       target = "/?X-Api-Key=a%20value%20of%20more%20than%20fifteen%20bytes";
    const caller            who("2001:db8::1",
                                {{"X-Api-Key", "a key of more than fifteen bytes"},
                                 {"Cookie", "X-Api-Key=a cookie of more than fifteen"}},
                                target, "t13d1516h2");
    const auto              before  = allocations;
    bool                    refused = false;
    for (int i = 0; i < 100; ++i) {
        weir::http::passage through;
        for (std::size_t place = 0; place < weir::http::passage::places_inside; ++place)
            refused |= limit.admit(who.visit(), through, t(0)).has_value();
    }
    const auto after = allocations;
    CHECK(after == before);
    CHECK_FALSE(refused);
}
