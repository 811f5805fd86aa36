// SPDX-License-Identifier: BSL-1.0

#include "weir/config/limits.hpp"

#include "words.hpp"
#include "weir/extract/cidr.hpp"
#include "weir/extract/client_ip.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::config {
namespace {

constexpr word<http::list_type> list_types[] = {{"allow", http::list_type::allow},
                                                {"deny", http::list_type::deny}};

/// What the three lists of whom to let in or keep out have in common.
template <class Options>
void read_common(const table& from, Options& into)
{
    static_cast<void>(from.text("category"));
    into.message = from.text("message", into.message);
    into.dry_run = from.flag("dry_run", into.dry_run);
    if constexpr (requires { into.type; }) read_word(from, "type", list_types, into.type, true);
}

std::vector<std::string> read_patterns(const table& from, std::string_view key)
{
    auto given = from.texts(key);
    for (std::size_t i = 0; i < given.size(); ++i)
        if (const auto fault = http::pattern_fault(given[i]); !fault.empty())
            from.reject(key, i,
                        std::string(key) + " has " + shown(given[i]) +
                            ", which is no pattern: " + fault);
    return given;
}

}  // namespace

std::optional<http::ip_restriction_options> read_ip_restriction(const table& from)
{
    const auto                   before = from.errors();
    http::ip_restriction_options out;
    read_common(from, out);
    out.ip_list = from.texts("ip_list");
    for (std::size_t i = 0; i < out.ip_list.size(); ++i)
        if (!cidr::parse(out.ip_list[i]))
            from.reject("ip_list", i,
                        "ip_list has " + shown(out.ip_list[i]) +
                            "; allowed are addresses and ranges such as 10.0.0.0/8");
    return from.errors() == before ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<http::ua_restriction_options> read_ua_restriction(const table& from)
{
    const auto                   before = from.errors();
    http::ua_restriction_options out;
    read_common(from, out);
    out.ua_list = read_patterns(from, "ua_list");
    return from.errors() == before ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<http::referer_restriction_options> read_referer_restriction(const table& from)
{
    const auto                        before = from.errors();
    http::referer_restriction_options out;
    read_common(from, out);
    out.referer_list = from.texts("referer_list");
    for (std::size_t i = 0; i < out.referer_list.size(); ++i)
        if (!http::is_referer_entry(out.referer_list[i]))
            from.reject("referer_list", i,
                        "referer_list has " + shown(out.referer_list[i]) +
                            "; allowed is a host, *. and a host, or *, without scheme and path");
    return from.errors() == before ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<http::ja4_restriction_options> read_ja4_restriction(const table& from)
{
    const auto                    before = from.errors();
    http::ja4_restriction_options out;
    read_common(from, out);
    out.ja4_list = read_patterns(from, "ja4_list");
    if (!from.has("ja4_list")) from.reject("", "ja4_list is required");
    else if (out.ja4_list.empty() && from.errors() == before)
        from.reject("ja4_list", "ja4_list is empty; one pattern or more is required");
    return from.errors() == before ? std::optional(std::move(out)) : std::nullopt;
}

void warn_without_ja4(const table& from, const http::ja4_restriction_options& rule,
                      std::string_view server)
{
    const auto effect =
        rule.type == http::list_type::allow ? "everybody is refused" : "nobody is refused";
    from.warn("category", "server " + shown(server) + " has no fingerprints, so " + effect +
                              " there: set ja4 = true, unless this is for its other servers");
}

std::optional<http::uri_block_options> read_uri_block(const table& from)
{
    const auto              before = from.errors();
    http::uri_block_options out;
    read_common(from, out);
    read_status(from, out.status);
    out.paths   = read_patterns(from, "paths");
    out.queries = read_patterns(from, "queries");
    out.methods = from.texts("methods");
    for (std::size_t i = 0; i < out.methods.size(); ++i)
        if (!weir::detail::is_token(out.methods[i]))
            from.reject("methods", i,
                        "methods has " + shown(out.methods[i]) + ", which is no name of a method");
    if (!from.has("paths") && !from.has("queries") && !from.has("methods"))
        from.reject("", "one of paths, queries and methods is required");
    else if (out.paths.empty() && out.queries.empty() && out.methods.empty() &&
             from.errors() == before)
        from.reject("", "paths, queries and methods are empty, so nothing would be blocked");
    return from.errors() == before ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace weir::config
