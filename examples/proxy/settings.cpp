// SPDX-License-Identifier: BSL-1.0

#include "settings.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string_view>
#include <thread>

namespace proxy {

using weir::config::shown;
using weir::config::table;
using namespace std::chrono_literals;

namespace {

constexpr weir::duration least = 1ms, most = std::chrono::hours(24);

basic_settings read_basic(const table& from)
{
    const basic_settings kept;
    const auto           cores = std::max(1U, std::thread::hardware_concurrency());
    const auto           wait  = [&](std::string_view key, weir::duration otherwise) {
        return from.duration(key, otherwise, least, most);
    };
    return {
        .trusted_proxies = from.ranges("trusted_proxies"),
        .ipv6_prefix     = from.integer("ipv6_prefix", kept.ipv6_prefix, 1, 128),
        .threads         = from.integer("threads", cores, 1U, 256U),
        .max_connections =
            from.integer<std::size_t>("max_connections", kept.max_connections, 1, 1 << 20),
        .max_header_bytes =
            from.integer<std::size_t>("max_header_bytes", kept.max_header_bytes, 1'024, 1 << 20),
        .cache_bytes    = from.integer<std::size_t>("cache_bytes", kept.cache_bytes, 0, 1UL << 36),
        .header_timeout = wait("header_timeout", kept.header_timeout),
        .body_timeout   = wait("body_timeout", kept.body_timeout),
        .write_timeout  = wait("write_timeout", kept.write_timeout),
        .idle_timeout   = wait("idle_timeout", kept.idle_timeout),
        .handshake_timeout = wait("handshake_timeout", kept.handshake_timeout),
        .shutdown_timeout  = wait("shutdown_timeout", kept.shutdown_timeout),
        .access_log        = from.text("access_log", ""),
        .access_log_client = from.flag("access_log_client", false),
        .via               = from.flag("via", false),
        .status            = from.listen("status") ? from.text("status", "") : std::string(),
    };
}

/// A value that is better not in the file: `env:NAME` or `file:PATH` say where it is.
std::string revealed(const table& from, std::string_view key)
{
    const auto written = from.secret(key, 1).value_or("");
    if (written.starts_with("env:")) {
        const auto* found = std::getenv(written.substr(4).c_str());
        if (found == nullptr)
            from.reject(key, std::string(key) + " names a variable that is not set");
        return found == nullptr ? std::string() : found;
    }
    if (!written.starts_with("file:")) return written;
    std::ifstream file(written.substr(5));
    if (!file) from.reject(key, std::string(key) + " names a file that cannot be read");
    std::string line;
    std::getline(file, line);
    return line;
}

store_settings read_store(const table& from)
{
    return {.name     = std::string(from.name()),
            .type     = from.one_of("type", "postgres", {"postgres"}),
            .conninfo = revealed(from, "conninfo"),
            .secret   = revealed(from, "secret")};
}

upstream_settings read_upstream(const table& from)
{
    upstream_settings made{.name = std::string(from.name()), .addrs = from.texts("addrs")};
    made.connect_timeout  = from.duration("connect_timeout", made.connect_timeout, least, most);
    made.response_timeout = from.duration("response_timeout", made.response_timeout, least, most);
    made.idle_connections =
        from.integer<std::size_t>("idle_connections", made.idle_connections, 0, 65'536);
    if (made.addrs.empty()) from.reject("addrs", "addrs is required, as in [\"127.0.0.1:5000\"]");
    return made;
}

location_settings read_location(const table& from)
{
    location_settings made{.name     = std::string(from.name()),
                           .path     = from.text("path", "/"),
                           .upstream = from.text("upstream", ""),
                           .plugins  = from.texts("plugins"),
                           .cache    = from.flag("cache", false)};
    if (!made.path.starts_with('/')) from.reject("path", "path must begin with /");
    if (made.upstream.empty()) from.reject("upstream", "upstream is required");
    return made;
}

server_settings read_server(const table& from)
{
    server_settings made{.name           = std::string(from.name()),
                         .addr           = from.text("addr", ""),
                         .locations      = from.texts("locations"),
                         .tls_cert       = from.text("tls_cert", ""),
                         .tls_key        = from.text("tls_key", ""),
                         .proxy_protocol = from.flag("proxy_protocol", false),
                         .ja4            = from.flag("ja4", false),
                         .ja4_header     = from.text("ja4_header", "")};
    if (!from.listen("addr") && made.addr.empty())
        from.reject("addr", "addr is required, as in \"127.0.0.1:6188\"");
    if (made.tls_cert.empty() != made.tls_key.empty())
        from.reject("tls_cert", "tls_cert and tls_key go together");
    return made;
}

/// Whether each name of the list is one of `known`; names of tables of the file.
template <class Tables>
void check_names(const table& from, std::string_view key, const std::vector<std::string>& names,
                 const Tables& known, std::string_view kind)
{
    for (std::size_t i = 0; i < names.size(); ++i)
        if (std::ranges::find(known, names[i]) == known.end())
            from.reject(key, i,
                        std::string(key) + " names " + shown(names[i]) + ", and there is no [" +
                            std::string(kind) + "." + names[i] + "]");
}

std::vector<std::string> names_of(const table& parent)
{
    std::vector<std::string> names;
    for (const auto& each : parent.children()) names.emplace_back(each.name());
    return names;
}

void check_references(const table& root, const settings& made)
{
    const auto upstreams = names_of(root.child("upstreams")),
               plugins   = names_of(root.child("plugins")),
               locations = names_of(root.child("locations"));
    for (const auto& one : made.locations) {
        const auto from = root.child("locations").child(one.name);
        check_names(from, "plugins", one.plugins, plugins, "plugins");
        if (!one.upstream.empty() && std::ranges::find(upstreams, one.upstream) == upstreams.end())
            from.reject("upstream", "upstream is " + shown(one.upstream) +
                                        ", and there is no [upstreams." + one.upstream + "]");
    }
    for (const auto& one : made.servers)
        check_names(root.child("servers").child(one.name), "locations", one.locations, locations,
                    "locations");
}

}  // namespace

settings read_settings(weir::config::document& from)
{
    const bool readable = from.ok();  // else all of it is missing, and that was told
    const auto root     = from.root();
    settings   made{.basic = read_basic(root.child("basic"))};
    for (const auto& each : root.child("stores").children())
        made.stores.push_back(read_store(each));
    for (const auto& each : root.child("upstreams").children())
        made.upstreams.push_back(read_upstream(each));
    for (const auto& each : root.child("locations").children())
        made.locations.push_back(read_location(each));
    for (const auto& each : root.child("servers").children())
        made.servers.push_back(read_server(each));
    check_references(root, made);
    if (made.servers.empty() && readable)
        root.reject("servers", "there is no [servers.NAME] to listen at");
    return made;
}

}  // namespace proxy
