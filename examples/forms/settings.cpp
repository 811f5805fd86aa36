// SPDX-License-Identifier: BSL-1.0

#include "settings.hpp"

#include "storage/records.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>

#include <sys/random.h>
#include <sys/un.h>

namespace forms {

namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t most_requests = 1'000'000'000;

/// Sixteen random bytes as text. getrandom of so few never comes back short.
std::string random_token()
{
    unsigned char bytes[16] = {};
    if (::getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return {};
    std::string token;
    for (const auto byte : bytes) {
        token += "0123456789abcdef"[byte >> 4];
        token += "0123456789abcdef"[byte & 15];
    }
    return token;
}

limit_settings read_limit(weir::environment& from, const std::string& which,
                          const limit_settings& otherwise)
{
    const auto name = "FORMS_RATE_LIMIT_" + which;
    return {.requests = from.integer(name + "_REQUESTS", otherwise.requests, std::uint64_t{1},
                                     most_requests),
            .window = from.seconds(name + "_WINDOW_SECONDS", otherwise.window, 1s, 24h * 366)};
}

void read_limits(weir::environment& from, settings& chosen)
{
    chosen.limited   = from.flag("FORMS_RATE_LIMIT_ENABLED", chosen.limited);
    chosen.source    = read_limit(from, "IP", chosen.source);
    chosen.endpoint  = read_limit(from, "ENDPOINT", chosen.endpoint);
    chosen.ip_secret = from.secret("FORMS_RATE_LIMIT_IP_SECRET", 16);
    // Whoever has a server for several hosts wants one limit for them.
    const auto otherwise = names_postgres(chosen.database) ? "database" : "memory";
    chosen.counters_in_database =
        from.one_of("FORMS_COUNTERS", otherwise, {"memory", "database"}) == "database";
}

void read_client(weir::environment& from, settings& chosen)
{
    auto& client = chosen.client;
    client.trusted_hops =
        from.integer("FORMS_TRUSTED_PROXY_HOPS", 0, 0, weir::client_ip::most_hops);
    client.trusted = from.ranges("FORMS_TRUSTED_PROXIES");
    client.prefix  = from.integer("FORMS_IPV6_PREFIX", client.prefix, 1, 128);
}

void read_listen(weir::environment& from, settings& chosen)
{
    constexpr std::string_view unix_prefix = "unix:";
    const auto                 text        = from.text("FORMS_LISTEN", "");
    if (!text.starts_with(unix_prefix)) {
        chosen.listen = from.listen("FORMS_LISTEN", chosen.listen);
        return;
    }
    chosen.unix_socket = text.substr(unix_prefix.size());
    if (chosen.unix_socket.empty() || chosen.unix_socket.size() >= sizeof(sockaddr_un::sun_path))
        from.reject("FORMS_LISTEN", text, "unix: and a path of 1 to 107 bytes");
}

void read_places(weir::environment& from, settings& chosen)
{
    chosen.database   = from.text("FORMS_DATABASE", chosen.database);
    const auto scheme = chosen.database.find("://");
    const bool known  = names_postgres(chosen.database) && is_conninfo(chosen.database);
    if (scheme != std::string::npos && !known)  // behind it may stand a password
        from.reject("FORMS_DATABASE", chosen.database.substr(0, scheme + 3) + "…",
                    "the path of a file, or postgresql:// and what libpq reads");
    chosen.outbox        = from.text("FORMS_OUTBOX", chosen.outbox);
    const auto token     = from.secret("FORMS_ADMIN_TOKEN", 16);
    chosen.token_is_made = !token;
    chosen.admin_token   = token ? *token : random_token();
}

void read_bounds(weir::environment& from, settings& chosen)
{
    auto& s            = chosen;
    s.max_body_bytes   = from.integer("FORMS_MAX_BODY_BYTES", s.max_body_bytes, std::size_t{1},
                                      std::size_t{16} << 20);
    s.max_header_bytes = from.integer("FORMS_MAX_HEADER_BYTES", s.max_header_bytes,
                                      std::size_t{1024}, std::size_t{1} << 20);
    s.max_connections  = from.integer("FORMS_MAX_CONNECTIONS", s.max_connections, 1U, 100'000U);
    s.max_connections_per_peer = from.integer("FORMS_MAX_CONNECTIONS_PER_PEER", s.max_connections,
                                              1U, 100'000U);
    s.idle_timeout     = from.seconds("FORMS_IDLE_SECONDS", s.idle_timeout, 1s, 1h);
    s.header_timeout   = from.seconds("FORMS_HEADER_SECONDS", s.header_timeout, 1s, 1h);
    s.body_timeout     = from.seconds("FORMS_BODY_SECONDS", s.body_timeout, 1s, 1h);
    s.write_timeout    = from.seconds("FORMS_WRITE_SECONDS", s.write_timeout, 1s, 1h);
    s.shutdown_timeout = from.seconds("FORMS_SHUTDOWN_SECONDS", s.shutdown_timeout, 1s, 1h);
    s.threads          = from.integer("FORMS_THREADS",
                                      std::clamp(std::thread::hardware_concurrency(), 1U, 256U),
                                      1U, 256U);
}

}  // namespace

settings read_settings(weir::environment& from)
{
    settings chosen;
    read_listen(from, chosen);
    read_places(from, chosen);
    read_limits(from, chosen);
    read_client(from, chosen);
    read_bounds(from, chosen);
    return chosen;
}

}  // namespace forms
