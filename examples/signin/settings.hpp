// SPDX-License-Identifier: BSL-1.0
#pragma once

// All that can be set, read once from the environment. README.md has the same as a table.

#include "weir/config/environment.hpp"
#include "weir/extract/client_ip.hpp"
#include "weir/policy/lockout.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace signin {

using std::chrono::seconds;

struct settings {
    weir::listen_address listen   = {.at = weir::address::from_v4({127, 0, 0, 1}), .port = 8082};
    std::string          folder   = "./weir-signin";
    std::string          accounts = {};             ///< A file: who may sign in.
    std::string          database = {};             ///< A file, or the URL of a server.
    std::optional<std::string> secret        = {};  ///< None: made, and kept in the folder.
    std::string                admin_token   = {};
    bool                       token_is_made = false;  ///< Nobody set one, so it must be told.

    std::string outbox    = {};  ///< A folder; unused with an smtp_url.
    std::string smtp_url  = {};
    bool        smtp_tls  = true;  ///< Nothing is sent without it.
    std::string mail_from = "sign-in@localhost";

    weir::lockout lockout     = {};  ///< Of a pair, and of a known device.
    std::uint64_t in_a_day    = 20;  ///< Its wider tier; 0: none.
    std::uint64_t per_user    = 100;
    std::uint64_t per_address = 100;

    std::uint64_t codes             = 5;  ///< Sent to one user at one address's wish.
    std::uint64_t codes_per_user    = 50;
    std::uint64_t codes_per_address = 50;
    seconds       code_lifetime     = std::chrono::minutes(10);

    weir::client_ip_options client  = {};
    std::size_t             threads = 16;
};

/// Reads them all; what is wrong is then in `from.complaint()`.
settings read_settings(weir::environment& from);

/// Whether a database is a server's: postgresql://… or postgres://….
[[nodiscard]] bool names_postgres(const std::string& database);

}  // namespace signin
