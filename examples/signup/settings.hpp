// SPDX-License-Identifier: BSL-1.0
#pragma once

// All that can be set, read once from the environment. README.md has the same as a table.

#include "weir/config/environment.hpp"
#include "weir/extract/client_ip.hpp"
#include "weir/policy/calendar_caps.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace signup {

using std::chrono::seconds;

/// SIGNUP_PER_<whom> and SIGNUP_PER_<whom>_WINDOW_SECONDS.
struct limit_settings {
    std::uint64_t requests = 20;
    seconds       window   = std::chrono::hours(1);
};

struct settings {
    weir::listen_address listen    = {.at = weir::address::from_v4({127, 0, 0, 1}), .port = 8081};
    std::string          url       = {};  ///< What links begin with; empty: where it listens.
    std::string          folder    = "./weir-signup";
    std::string          database  = {};  ///< A file, or the URL of a server.
    std::string          outbox    = {};
    std::string          smtp_url  = {};  ///< Empty: mails are files in the outbox.
    std::string          mail_from = "signup@localhost";
    std::string          secret    = {};
    bool                 secret_is_made = false;
    std::string          admin_token    = {};
    bool                 token_is_made  = false;  ///< Nobody set one, so it must be told.

    weir::calendar_caps     caps         = {};
    seconds                 form_min_age = seconds(3);
    seconds                 form_max_age = std::chrono::hours(2);
    std::size_t             spent_tokens = 100'000;
    seconds                 trap_lenient = seconds(0);  ///< 0: a filled trap is sprung at any age.
    limit_settings          per_client   = {.requests = 20};
    limit_settings          per_address  = {.requests = 3};
    weir::client_ip_options client       = {};

    bool                     fold_tags       = true;  ///< a+tag@x.test is a@x.test.
    std::vector<std::string> dotless_domains = {};    ///< Where a.b@ is ab@.

    seconds  link_life = std::chrono::hours(24);
    seconds  lease     = seconds(60);  ///< Of a mail that a worker took.
    unsigned workers   = 1;            ///< 0: others send.
    unsigned threads   = 16;
};

/// Reads them all; what is wrong is then in `from.complaint()`.
settings read_settings(weir::environment& from);

/// 128 random bits as 32 letters.
std::string random_id();

/// Whether a database of this name is one of PostgreSQL: a URL.
[[nodiscard]] inline bool names_postgres(std::string_view database) noexcept
{
    return database.starts_with("postgresql://") || database.starts_with("postgres://");
}

}  // namespace signup
