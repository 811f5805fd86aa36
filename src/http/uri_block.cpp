// SPDX-License-Identifier: BSL-1.0

#include "patterns.hpp"
#include "weir/extract/client_ip.hpp"
#include "weir/extract/query.hpp"
#include "weir/http/refusal.hpp"
#include "weir/invalid.hpp"

#include <algorithm>
#include <utility>

namespace weir::http {
namespace {

/// The path of a request's target as it was sent; of the absolute form without scheme and host.
std::string_view path_of(std::string_view target) noexcept
{
    target            = target.substr(0, target.find_first_of("?#"));
    const auto scheme = target.find("://");
    if (target.starts_with('/') || scheme == target.npos) return target;
    target.remove_prefix(scheme + 3);
    const auto slash = target.find('/');
    return slash == target.npos ? std::string_view("/") : target.substr(slash);
}

std::string decoded(std::string_view text, bool plus_is_space)
{
    std::string out;
    while (!text.empty()) out += weir::detail::take_decoded(text, plus_is_space);
    return out;
}

/// Adds one segment and a slash to what ends with a slash, or goes up by one.
void step(std::string& out, std::string_view segment)
{
    segment = segment.substr(0, segment.find(';'));
    if (segment == "..") {
        if (out.size() > 1) out.resize(out.rfind('/', out.size() - 2) + 1);
    } else if (!segment.empty() && segment != ".") {
        out.append(segment).append("/");
    }
}

void check(const uri_block_options& options)
{
    static_cast<void>(error_status(options.status));
    for (std::size_t i = 0; i < options.methods.size(); ++i)
        if (!detail::is_token(options.methods[i]))
            detail::invalid("uri_block: methods[" + std::to_string(i) + "] is " +
                            detail::shown(options.methods[i]) +
                            "; allowed is the name of a method such as GET");
    if (options.paths.empty() && options.queries.empty() && options.methods.empty())
        detail::invalid("uri_block: one of paths, queries and methods is required");
}

}  // namespace

std::string plain_path(std::string_view path)
{
    auto text = decoded(path, false);
    std::ranges::replace(text, '\\', '/');
    std::string      out  = "/";
    std::string_view rest = text, last;
    while (!rest.empty()) {
        last = rest.substr(0, rest.find('/'));
        step(out, last);
        rest.remove_prefix(std::min(last.size() + 1, rest.size()));
    }
    // What names a folder keeps its slash: an end of `/`, `/.` and `/..` (RFC 3986).
    last              = last.substr(0, last.find(';'));
    const bool folder = text.ends_with('/') || last == "." || last == ".." || last.empty();
    if (!folder && out.size() > 1) out.pop_back();
    return out;
}

uri_block::uri_block(uri_block_options options, shadow_log* log)
    : options_(std::move(options)),
      paths_(std::make_shared<const patterns>("uri_block: paths", options_.paths)),
      queries_(std::make_shared<const patterns>("uri_block: queries", options_.queries)), log_(log)
{
    check(options_);
    for (auto& method : options_.methods)
        for (auto& c : method)
            if (c >= 'a' && c <= 'z') c = static_cast<char>(c & ~0x20);
}

std::optional<answer> uri_block::admit(const visit& who, instant at) const
{
    const auto stop = [&](std::string_view matched) {
        return refused(who,
                       {.status = options_.status, .reason = options_.message, .matched = matched},
                       options_.dry_run, log_, at);
    };
    const auto method = who.from.method();
    if (!options_.methods.empty() &&
        std::ranges::find(options_.methods, method) == options_.methods.end())
        return stop(method);

    const auto path = path_of(who.from.target());
    if (paths_->match(path) || (!options_.paths.empty() && paths_->match(plain_path(path))))
        return stop(path);

    const auto query = weir::detail::query_of(who.from.target());
    if (options_.queries.empty() || query.empty()) return std::nullopt;
    if (queries_->match(query) || queries_->match(decoded(query, true))) return stop(query);
    return std::nullopt;
}

}  // namespace weir::http
