// SPDX-License-Identifier: BSL-1.0
#pragma once

// Who is not served at all: by address, by User-Agent, by the site that sent the visitor, by TLS
// fingerprint, by what is asked for. A list of whom to let in, or of whom to keep out.
// docs/configuration.md has the keys under which an operator writes them.

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/extract/address.hpp"
#include "weir/http/answer.hpp"
#include "weir/http/shadow_log.hpp"
#include "weir/http/visit.hpp"
#include "weir/time.hpp"

namespace weir::http {

enum class list_type : std::uint8_t {
    allow,  ///< Only what is listed goes on: an empty list stops everybody.
    deny,   ///< What is listed is stopped.
};

// Each filter is immutable, hence thread-safe, and cheap to move; it borrows `log`, where dry_run
// tells what would have been refused (without one it is silent). `at` is for that log only. Each
// constructor throws std::invalid_argument that names the option, its value and what is allowed.

struct ip_restriction_options {
    list_type                type    = list_type::allow;
    std::vector<std::string> ip_list = {};  ///< Addresses and ranges (`10.0.0.0/8`).
    std::string              message = "Request is forbidden";  ///< The body of the 403.
    bool                     dry_run = false;  ///< Refuse nothing, log what would be.
};

/// By the client's address. A request without one is answered with 400 whatever the list says.
class ip_restriction {
public:
    explicit ip_restriction(ip_restriction_options options, shadow_log* log = nullptr);

    /// O(number of different prefix lengths × log of the list).
    [[nodiscard]] std::optional<answer> admit(const visit& who, instant at = now()) const;

private:
    [[nodiscard]] bool listed(const address& one) const noexcept;

    ip_restriction_options                  options_;
    std::set<std::pair<ip_family, int>>     prefixes_;
    std::set<std::pair<int, weir::address>> networks_;  // under their prefix length
    shadow_log*                             log_;
};

/// Many regular expressions, looked for at once, in time linear in the text.
class patterns;

struct ua_restriction_options {
    list_type                type    = list_type::allow;
    std::vector<std::string> ua_list = {};  ///< Regular expressions, see `pattern_fault`.
    std::string              message = "Request is forbidden";
    bool                     dry_run = false;
};

/// By the User-Agent. Without one: `allow` stops, `deny` does not. Of several lines one that is
/// listed is enough for `deny`, and one that is not for `allow`.
class ua_restriction {
public:
    explicit ua_restriction(ua_restriction_options options, shadow_log* log = nullptr);

    /// Linear in the header.
    [[nodiscard]] std::optional<answer> admit(const visit& who, instant at = now()) const;

private:
    ua_restriction_options          options_;
    std::shared_ptr<const patterns> list_;
    shadow_log*                     log_;
};

struct referer_restriction_options {
    list_type type = list_type::allow;

    /// Hosts (`example.com`) and, with `*.`, all below one but not itself (`*.example.com`); `*`
    /// is any host. In either case.
    std::vector<std::string> referer_list = {};

    std::string message = "Request is forbidden";
    bool        dry_run = false;
};

/// By the host of the Referer. Without one, and with one that is no URL with a host: `allow` stops,
/// `deny` does not. Several lines: as for `ua_restriction`.
class referer_restriction {
public:
    explicit referer_restriction(referer_restriction_options options, shadow_log* log = nullptr);

    /// Linear in the header.
    [[nodiscard]] std::optional<answer> admit(const visit& who, instant at = now()) const;

private:
    [[nodiscard]] bool listed(std::string_view referer) const;

    referer_restriction_options        options_;
    std::set<std::string, std::less<>> hosts_;
    std::set<std::string, std::less<>> below_;  // `*.example.com` as `example.com`
    bool                               any_ = false;
    shadow_log*                        log_;
};

struct ja4_restriction_options {
    list_type                type     = list_type::allow;
    std::vector<std::string> ja4_list = {};  ///< Patterns, see `pattern_fault`. At least one.
    std::string              message  = "Request is forbidden";
    bool                     dry_run  = false;
};

/// By the fingerprint of the connection, `visit::ja4`. Without one, as over plain HTTP: `allow`
/// stops, `deny` does not. A client can copy a listed one: docs/tls-fingerprints.md.
class ja4_restriction {
public:
    explicit ja4_restriction(ja4_restriction_options options, shadow_log* log = nullptr);

    /// Linear in the fingerprint.
    [[nodiscard]] std::optional<answer> admit(const visit& who, instant at = now()) const;

private:
    ja4_restriction_options         options_;
    std::shared_ptr<const patterns> list_;
    shadow_log*                     log_;
};

/// At least one of the three lists must have an entry.
struct uri_block_options {
    std::vector<std::string> paths   = {};   ///< Patterns, see `pattern_fault`.
    std::vector<std::string> queries = {};   ///< Patterns.
    std::vector<std::string> methods = {};   ///< Those let through; in either case. Empty: all.
    int                      status  = 403;  ///< 400 to 599.
    std::string              message = "Request is blocked";
    bool                     dry_run = false;
};

/// By what is asked for. A path is looked at as it was sent and as `plain_path` makes it, a query
/// as it was sent and percent-decoded once with `+` as a space: what matches either way is stopped.
class uri_block {
public:
    explicit uri_block(uri_block_options options, shadow_log* log = nullptr);

    /// Linear in the request's target.
    [[nodiscard]] std::optional<answer> admit(const visit& who, instant at = now()) const;

private:
    uri_block_options               options_;
    std::shared_ptr<const patterns> paths_;
    std::shared_ptr<const patterns> queries_;
    shadow_log*                     log_;
};

/// What is wrong with a regular expression in the syntax of RE2, empty if nothing is. Patterns and
/// texts are bytes, so that no encoding hides a text from a pattern; a pattern matches anywhere
/// unless it is anchored with ^ and $, and in one case only unless it starts with (?i).
[[nodiscard]] std::string pattern_fault(std::string_view pattern);

/// Whether this may stand in a `referer_list`.
[[nodiscard]] bool is_referer_entry(std::string_view entry);

/// The path as a server that tidies it reads it: percent-decoded once, `\` as `/`, the
/// `;parameters` of a segment taken off, `//` as one slash, `.` and `..` resolved (RFC 3986
/// section 5.2.4). Starts with a slash. O(length).
[[nodiscard]] std::string plain_path(std::string_view path);

}  // namespace weir::http
