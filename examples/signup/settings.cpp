// SPDX-License-Identifier: BSL-1.0

#include "settings.hpp"

#include "mail/address.hpp"

#include <cstdlib>
#include <string_view>

#include <sys/random.h>

namespace signup {

namespace {

using namespace std::chrono_literals;

limit_settings read_limit(weir::environment& from, const std::string& whom,
                          const limit_settings& otherwise)
{
    const auto name = "SIGNUP_PER_" + whom;
    return {.requests = from.integer(name, otherwise.requests, std::uint64_t{1},
                                     std::uint64_t{1'000'000'000}),
            .window   = from.seconds(name + "_WINDOW_SECONDS", otherwise.window, 1s, 24h * 366)};
}

std::vector<std::string> words(std::string_view text)
{
    std::vector<std::string> found;
    while (!text.empty()) {
        const auto word = text.substr(0, text.find_first_of(", "));
        text.remove_prefix(std::min(word.size() + 1, text.size()));
        if (!word.empty()) found.push_back(lower_case(word));
    }
    return found;
}

void read_places(weir::environment& from, settings& chosen)
{
    chosen.listen     = from.listen("SIGNUP_LISTEN", chosen.listen);
    chosen.folder     = from.text("SIGNUP_FOLDER", chosen.folder);
    chosen.database   = from.text("SIGNUP_DATABASE", chosen.folder + "/signup.db");
    const auto scheme = chosen.database.find("://");
    if (scheme != std::string::npos && !names_postgres(chosen.database))
        from.reject("SIGNUP_DATABASE", chosen.database.substr(0, scheme + 3) + "…",
                    "the path of a file, or postgresql:// and what libpq reads");
    chosen.outbox  = from.text("SIGNUP_OUTBOX", chosen.folder + "/outbox");
    chosen.url     = from.text("SIGNUP_URL", "");
    const bool web = chosen.url.starts_with("http://") || chosen.url.starts_with("https://");
    if (!chosen.url.empty() && !web)
        from.reject("SIGNUP_URL", chosen.url, "http:// or https:// and a host");
    while (chosen.url.ends_with('/')) chosen.url.pop_back();
}

void read_mail(weir::environment& from, settings& chosen)
{
    chosen.smtp_url = from.text("SIGNUP_SMTP_URL", "");
    const bool smtp =
        chosen.smtp_url.starts_with("smtp://") || chosen.smtp_url.starts_with("smtps://");
    if (!chosen.smtp_url.empty() && !smtp)  // behind it may stand a password
        from.reject("SIGNUP_SMTP_URL", "…", "smtp:// or smtps:// and a host");
    chosen.mail_from = from.text("SIGNUP_MAIL_FROM", chosen.mail_from);
    if (!mail_address::parse(chosen.mail_from))
        from.reject("SIGNUP_MAIL_FROM", chosen.mail_from, "an address such as signup@example.org");
    chosen.link_life       = from.seconds("SIGNUP_LINK_SECONDS", chosen.link_life, 60s, 24h * 366);
    chosen.lease           = from.seconds("SIGNUP_LEASE_SECONDS", chosen.lease, 2s, 1h);
    chosen.workers         = from.integer("SIGNUP_WORKERS", chosen.workers, 0U, 64U);
    chosen.fold_tags       = from.flag("SIGNUP_PLUS_TAGS", chosen.fold_tags);
    chosen.dotless_domains = words(from.text("SIGNUP_DOTLESS_DOMAINS", ""));
}

void read_secrets(weir::environment& from, settings& chosen)
{
    const auto secret     = from.secret("SIGNUP_SECRET", 16);
    chosen.secret_is_made = !secret;
    chosen.secret         = secret ? *secret : random_id();
    const auto token      = from.secret("SIGNUP_ADMIN_TOKEN", 16);
    chosen.token_is_made  = !token;
    chosen.admin_token    = token ? *token : random_id();
}

void read_caps(weir::environment& from, settings& chosen)
{
    auto& caps      = chosen.caps;
    caps.per_hour   = from.integer("SIGNUP_PER_HOUR", caps.per_hour, 1U, 1'000'000U);
    caps.per_day    = from.integer("SIGNUP_PER_DAY", caps.per_day, 1U, 1'000'000U);
    caps.spread     = from.flag("SIGNUP_SPREAD", caps.spread);
    caps.day_starts = std::chrono::hours(from.integer("SIGNUP_DAY_STARTS", 0, 0, 23));
}

void read_form(weir::environment& from, settings& chosen)
{
    auto& s        = chosen;
    s.form_min_age = from.seconds("SIGNUP_FORM_MIN_AGE_SECONDS", s.form_min_age, 0s, 1h);
    s.form_max_age = from.seconds("SIGNUP_FORM_MAX_AGE_SECONDS", s.form_max_age, 1s, 24h * 366);
    if (s.form_min_age > s.form_max_age)
        from.reject("SIGNUP_FORM_MIN_AGE_SECONDS", std::to_string(s.form_min_age.count()),
                    "at most SIGNUP_FORM_MAX_AGE_SECONDS");
    s.spent_tokens = from.integer("SIGNUP_SPENT_TOKENS", s.spent_tokens, std::size_t{1},
                                  std::size_t{1'000'000'000});
    s.trap_lenient = from.seconds("SIGNUP_TRAP_LENIENT_SECONDS", s.trap_lenient, 0s, 1h);
}

void read_clients(weir::environment& from, settings& chosen)
{
    auto& client       = chosen.client;
    chosen.per_client  = read_limit(from, "CLIENT", chosen.per_client);
    chosen.per_address = read_limit(from, "ADDRESS", chosen.per_address);
    client.trusted_hops =
        from.integer("SIGNUP_TRUSTED_PROXY_HOPS", 0, 0, weir::client_ip::most_hops);
    client.trusted = from.ranges("SIGNUP_TRUSTED_PROXIES");
    client.prefix  = from.integer("SIGNUP_IPV6_PREFIX", client.prefix, 1, 128);
    chosen.threads = from.integer("SIGNUP_THREADS", chosen.threads, 1U, 256U);
}

}  // namespace

settings read_settings(weir::environment& from)
{
    settings chosen;
    read_places(from, chosen);
    read_mail(from, chosen);
    read_secrets(from, chosen);
    read_caps(from, chosen);
    read_form(from, chosen);
    read_clients(from, chosen);
    return chosen;
}

std::string random_id()
{
    unsigned char bytes[16] = {};
    // So few never come back short; without them nothing here may go on.
    if (::getrandom(bytes, sizeof bytes, 0) != sizeof bytes) std::abort();
    std::string id;
    for (const auto byte : bytes) {
        id += "0123456789abcdef"[byte >> 4];
        id += "0123456789abcdef"[byte & 15];
    }
    return id;
}

}  // namespace signup
