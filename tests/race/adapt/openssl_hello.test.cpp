// SPDX-License-Identifier: BSL-1.0

#include "weir/adapt/openssl_hello.hpp"

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "reference/tls_ends.hpp"

TEST_CASE("connections of one context on four threads keep their own fingerprints")
{
    const auto server = reference::server_context();
    REQUIRE(weir::watch_hellos(server.get()));
    std::array<reference::tls_context, 2> clients{reference::client_context(),
                                                  reference::client_context()};
    SSL_CTX_set_max_proto_version(clients[1].get(), TLS1_2_VERSION);

    std::atomic<int>         wrong = 0, right = 0;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < 4; ++i)
        threads.emplace_back([&, i] {
            for (int round = 0; round < 20; ++round) {
                reference::tls_link link(clients[i % 2], server);
                const bool          shaken = link.shake();
                const auto          found  = weir::ja4_of(link.server.get());
                const bool held = shaken && found.outline().starts_with(i % 2 == 0 ? "t13" : "t12");
                ++(held ? right : wrong);
            }
        });
    for (auto& thread : threads) thread.join();
    CHECK(wrong == 0);
    CHECK(right == 80);
}
