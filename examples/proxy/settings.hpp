// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a configuration file says, checked; README.md has the table of all keys. Plugins stay tables
// of the document, read by the library when the site is made.

#include "weir/config/document.hpp"
#include "weir/time.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace proxy {

using std::chrono::seconds;

struct basic_settings {
    std::vector<std::string> trusted_proxies = {};
    int                      ipv6_prefix     = 64;
    unsigned                 threads         = 1;
    std::size_t              max_connections = 16'384;  ///< Of clients; more are closed at once.

    std::size_t    max_header_bytes  = 16'384;
    std::size_t    cache_bytes       = 64 << 20;  ///< Of all responses kept; of one, a sixteenth.
    weir::duration header_timeout    = seconds(10);  ///< For a whole request head.
    weir::duration body_timeout      = seconds(15);  ///< Between two pieces of a body.
    weir::duration write_timeout     = seconds(15);  ///< For a client that does not read.
    weir::duration idle_timeout      = seconds(60);  ///< Between two requests of a connection.
    weir::duration handshake_timeout = seconds(5);   ///< Of TLS.
    weir::duration shutdown_timeout  = seconds(10);  ///< For exchanges under way at the end.

    std::string access_log        = {};  ///< A file, `stdout`, or nothing.
    bool        access_log_client = false;
    bool        via               = false;
    std::string status            = {};  ///< Where the page of figures listens.

    friend bool operator==(const basic_settings&, const basic_settings&) = default;
};

struct upstream_settings {
    std::string              name             = {};
    std::vector<std::string> addrs            = {};
    weir::duration           connect_timeout  = seconds(2);
    weir::duration           response_timeout = seconds(60);  ///< Until the head of a response.
    std::size_t              idle_connections = 64;           ///< Kept, of each thread.
};

struct location_settings {
    std::string              name     = {};
    std::string              path     = "/";
    std::string              upstream = {};
    std::vector<std::string> plugins  = {};
    bool                     cache    = false;
};

struct server_settings {
    std::string              name           = {};
    std::string              addr           = {};
    std::vector<std::string> locations      = {};
    std::string              tls_cert       = {};
    std::string              tls_key        = {};
    bool                     proxy_protocol = false;
    bool                     ja4            = false;
    std::string              ja4_header     = {};  ///< Of a peer in `trusted_proxies`.
};

struct store_settings {
    std::string name     = {};
    std::string type     = {};
    std::string conninfo = {};
    std::string secret   = {};

    friend bool operator==(const store_settings&, const store_settings&) = default;
};

struct settings {
    basic_settings                 basic     = {};
    std::vector<store_settings>    stores    = {};
    std::vector<upstream_settings> upstreams = {};
    std::vector<location_settings> locations = {};
    std::vector<server_settings>   servers   = {};
};

/// Reads all tables but `plugins`. What is wrong is told to the document.
[[nodiscard]] settings read_settings(weir::config::document& from);

}  // namespace proxy
