// SPDX-License-Identifier: BSL-1.0

#include "settings.hpp"

#include "random_text.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace signin {

namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t most_counted = 1'000'000;

void read_places(weir::environment& from, settings& chosen)
{
    chosen.folder     = from.text("SIGNIN_FOLDER", chosen.folder);
    chosen.accounts   = from.text("SIGNIN_ACCOUNTS", chosen.folder + "/accounts");
    chosen.database   = from.text("SIGNIN_DATABASE", chosen.folder + "/counters.db");
    const auto scheme = chosen.database.find("://");
    if (scheme != std::string::npos && !names_postgres(chosen.database))
        from.reject("SIGNIN_DATABASE", chosen.database.substr(0, scheme + 3) + "…",
                    "the path of a file, or postgresql://…");  // behind it may stand a password
    chosen.secret        = from.secret("SIGNIN_SECRET", 32);
    const auto token     = from.secret("SIGNIN_ADMIN_TOKEN", 16);
    chosen.token_is_made = !token;
    chosen.admin_token   = token ? *token : random_text(16);
}

void read_mail(weir::environment& from, settings& chosen)
{
    chosen.outbox   = from.text("SIGNIN_OUTBOX", chosen.folder + "/outbox");
    chosen.smtp_url = from.text("SIGNIN_SMTP_URL", "");
    if (!chosen.smtp_url.empty() && !chosen.smtp_url.starts_with("smtp://") &&
        !chosen.smtp_url.starts_with("smtps://"))
        from.reject("SIGNIN_SMTP_URL", "…", "smtp://HOST:PORT or smtps://USER:PASSWORD@HOST:PORT");
    chosen.smtp_tls  = from.flag("SIGNIN_SMTP_TLS", chosen.smtp_tls);
    chosen.mail_from = from.text("SIGNIN_MAIL_FROM", chosen.mail_from);
    if (chosen.mail_from.find_first_of("\r\n<> ") != std::string::npos)
        from.reject("SIGNIN_MAIL_FROM", chosen.mail_from, "an address such as sign-in@example.org");
}

void read_lockout(weir::environment& from, settings& chosen)
{
    auto& s = chosen.lockout;
    s.failures =
        from.integer("SIGNIN_FAILURES", s.failures, std::uint64_t{1}, weir::lockout::most_failures);
    const auto seconds_of = [&](std::string_view name, weir::duration otherwise) {
        return from.seconds(name, std::chrono::floor<seconds>(otherwise), 1s, 24h * 366);
    };
    s.window         = seconds_of("SIGNIN_WINDOW_SECONDS", s.window);
    s.first          = seconds_of("SIGNIN_FIRST_SECONDS", s.first);
    s.longest        = seconds_of("SIGNIN_LONGEST_SECONDS", s.longest);
    s.quiet          = seconds_of("SIGNIN_QUIET_SECONDS", s.quiet);
    s.outcome_within = std::min(s.outcome_within, s.first);
    s.grain          = weir::lockout{.failures = s.failures, .window = s.window}.grain;
    chosen.in_a_day  = from.integer("SIGNIN_FAILURES_A_DAY", chosen.in_a_day, std::uint64_t{0},
                                    weir::lockout::most_failures);
    if (const auto wrong = s.complaint(); !wrong.empty())
        from.reject("SIGNIN_FAILURES and SIGNIN_…_SECONDS", wrong, "what docs/lockout.md says");
}

void read_wide(weir::environment& from, settings& chosen)
{
    const auto number = [&](std::string_view name, std::uint64_t otherwise) {
        return from.integer(name, otherwise, std::uint64_t{1}, most_counted);
    };
    chosen.per_user          = number("SIGNIN_FAILURES_PER_USER", chosen.per_user);
    chosen.per_address       = number("SIGNIN_FAILURES_PER_ADDRESS", chosen.per_address);
    chosen.codes             = number("SIGNIN_CODES", chosen.codes);
    chosen.codes_per_user    = number("SIGNIN_CODES_PER_USER", chosen.codes_per_user);
    chosen.codes_per_address = number("SIGNIN_CODES_PER_ADDRESS", chosen.codes_per_address);
    chosen.code_lifetime     = from.seconds("SIGNIN_CODE_SECONDS", chosen.code_lifetime, 1s, 1h);
}

void read_client(weir::environment& from, settings& chosen)
{
    auto& client = chosen.client;
    client.trusted_hops =
        from.integer("SIGNIN_TRUSTED_PROXY_HOPS", 0, 0, weir::client_ip::most_hops);
    client.trusted = from.ranges("SIGNIN_TRUSTED_PROXIES");
    client.prefix  = from.integer("SIGNIN_IPV6_PREFIX", client.prefix, 1, 128);
}

}  // namespace

bool names_postgres(const std::string& database)
{
    return database.starts_with("postgresql://") || database.starts_with("postgres://");
}

settings read_settings(weir::environment& from)
{
    settings chosen;
    chosen.listen = from.listen("SIGNIN_LISTEN", chosen.listen);
    read_places(from, chosen);
    read_mail(from, chosen);
    read_lockout(from, chosen);
    read_wide(from, chosen);
    read_client(from, chosen);
    chosen.threads =
        from.integer("SIGNIN_THREADS", chosen.threads, std::size_t{1}, std::size_t{256});
    return chosen;
}

}  // namespace signin
