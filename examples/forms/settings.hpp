// SPDX-License-Identifier: BSL-1.0
#pragma once

// All that can be set, read once from the environment. README.md has the same as a table.

#include "weir/config/environment.hpp"
#include "weir/extract/client_ip.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace forms {

using std::chrono::seconds;

/// One of the two limits: FORMS_RATE_LIMIT_<which>_REQUESTS and …_WINDOW_SECONDS.
struct limit_settings {
    std::uint64_t requests = 60;
    seconds       window   = seconds(60);
};

struct settings {
    weir::listen_address listen      = {.at = weir::address::from_v4({127, 0, 0, 1}), .port = 8080};
    std::string          unix_socket = {};  ///< Instead of `listen`, if FORMS_LISTEN is unix:PATH.
    std::string          database    = "./weir-forms.db";  ///< A file, or the URL of a server.
    std::string          outbox      = "./weir-outbox";
    std::string          admin_token = {};
    bool                 token_is_made = false;  ///< Nobody set one, so it must be told.

    bool                       limited   = true;
    limit_settings             source    = {.requests = 60};
    limit_settings             endpoint  = {.requests = 600};
    std::optional<std::string> ip_secret = {};
    bool                       counters_in_database = false;
    weir::client_ip_options    client    = {};

    std::size_t   max_body_bytes   = 262'144;
    std::size_t   max_header_bytes = 16'384;
    std::uint32_t max_connections  = 1024;
    std::uint32_t max_connections_per_peer = 1024;
    seconds       idle_timeout     = seconds(60);  ///< Between two requests of a connection.
    seconds       header_timeout   = seconds(10);
    seconds       body_timeout     = seconds(15);
    seconds       write_timeout    = seconds(10);
    seconds       shutdown_timeout = seconds(10);
    unsigned      threads          = 1;
};

/// Reads them all; what is wrong is then in `from.complaint()`.
settings read_settings(weir::environment& from);

}  // namespace forms
