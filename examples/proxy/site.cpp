// SPDX-License-Identifier: BSL-1.0

#include "site.hpp"

#include "plugins.hpp"
#include "stores.hpp"

#include "weir/config/limits.hpp"
#include "weir/http/restriction.hpp"
#if WEIR_PROXY_JA4
#include "weir/adapt/openssl_hello.hpp"
#include "weir/extract/ja4_header.hpp"
#endif

#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <new>

namespace proxy {

namespace {

#if WEIR_PROXY_JA4
constexpr auto longest_hello = std::size_t{16'384};  // a longer one has no fingerprint
#endif

void write_warning(std::string_view line)
{
    std::fprintf(stderr, "WARN weir-proxy: %.*s\n", static_cast<int>(line.size()), line.data());
}

/// Whether servers that tidy a path could read another one in it.
bool has_other_spellings(std::string_view path) noexcept
{
    return path.find_first_of("%;\\") != path.npos || path.find("//") != path.npos ||
           path.find("/.") != path.npos;
}

std::shared_ptr<asio::ssl::context> make_tls(const server_settings& chosen)
{
    auto made = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
    made->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_sslv2 |
                      asio::ssl::context::no_sslv3 | asio::ssl::context::no_tlsv1 |
                      asio::ssl::context::no_tlsv1_1 | asio::ssl::context::no_compression);
    made->use_certificate_chain_file(chosen.tls_cert);
    made->use_private_key_file(chosen.tls_key, asio::ssl::context::pem);
    ::SSL_CTX_set_mode(made->native_handle(), SSL_MODE_RELEASE_BUFFERS);
#if WEIR_PROXY_JA4
    if (chosen.ja4 && !weir::watch_hellos(made->native_handle(), longest_hello))
        throw std::bad_alloc();
#endif
    return made;
}

}  // namespace

state::state(const weir::http::counters_options& sizes)
    : stores(std::make_unique<shared_stores>()), counters(sizes)
{
}

state::~state() = default;

weir::http::shadow_log& state::shadow(const std::string& plugin, const std::string& category)
{
    const std::lock_guard lock(mutex);
    auto&                 log = shadows[category + " " + plugin];
    if (!log) log = std::make_unique<weir::http::shadow_log>(plugin, category, write_warning);
    return *log;
}

void state::flush_shadows()
{
    const std::lock_guard lock(mutex);
    for (const auto& [name, log] : shadows) log->flush();
}

const location* server_site::find(std::string_view target) const
{
    const auto path   = target.substr(0, target.find('?'));
    const auto plain  = has_other_spellings(path) ? weir::http::plain_path(path) : std::string();
    const auto sought = plain.empty() ? path : std::string_view(plain);
    const auto found  = std::ranges::find_if(
         by_length, [&](const location* one) { return sought.starts_with(one->chosen.path); });
    return found == by_length.end() ? nullptr : *found;
}

site::site(weir::config::document& from, const settings& settings_read, state& lasting)
    : chosen(settings_read),
      source({.trusted = chosen.basic.trusted_proxies, .prefix = chosen.basic.ipv6_prefix}),
      plugins(read_plugins(from, lasting)),
      trusted_("basic.trusted_proxies", chosen.basic.trusted_proxies)
{
    make_locations(from, lasting);
    make_servers(from);
    if (chosen.basic.access_log.empty()) return;
    try {
        log = std::make_shared<log_file>(chosen.basic.access_log);
    } catch (const std::exception& failed) {
        from.root().child("basic").reject("access_log", failed.what());
    }
}

void site::make_locations(weir::config::document& from, state& lasting)
{
    std::map<std::string, std::shared_ptr<const upstream>> upstreams;
    for (const auto& one : chosen.upstreams) try {
            upstreams[one.name] = std::make_shared<upstream>(one, lasting.known);
        } catch (const std::exception& failed) {
            from.root().child("upstreams").child(one.name).reject("addrs", failed.what());
        }
    for (const auto& one : chosen.locations) {
        location made{.chosen = one, .to = upstreams[one.upstream]};
        for (const auto& name : one.plugins)
            for (const auto& each : plugins)
                if (each.name == name)
                    (each.step == weir::http::limit_step::request ? made.arrival : made.onward)
                        .add(each.use);
        locations.push_back(std::move(made));
    }
}

void site::make_servers(weir::config::document& from)
{
    for (const auto& one : chosen.servers) {
        const auto  table = from.root().child("servers").child(one.name);
        server_site made{.chosen = one};
        if (at(one.addr) != nullptr) table.reject("addr", "addr is that of another server");
        for (const auto& each : locations)
            if (std::ranges::find(one.locations, each.chosen.name) != one.locations.end())
                made.by_length.push_back(&each);
        std::ranges::stable_sort(made.by_length, std::greater<>(),
                                 [](const location* each) { return each->chosen.path.size(); });
        try {
            if (!one.tls_cert.empty()) made.tls = make_tls(one);
        } catch (const std::exception& failed) {
            table.reject("tls_cert", std::string("tls_cert and tls_key: ") + failed.what());
        }
        find_fingerprints(table, made);
        if ((!one.ja4 || one.tls_cert.empty()) && !made.ja4_told) warn_without_ja4(from, one);
        servers.push_back(std::move(made));
    }
}

void site::find_fingerprints(const weir::config::table& from, server_site& of) const
{
    const auto& name = of.chosen.ja4_header;
    if (of.chosen.ja4 && of.chosen.tls_cert.empty())
        from.warn("ja4", "ja4 has no effect without tls_cert and tls_key");
#if WEIR_PROXY_JA4
    if (name.empty()) return;
    if (trusted_.empty())
        return from.warn("ja4_header", "ja4_header has no effect without basic.trusted_proxies");
    if (!weir::detail::is_token(name))
        return from.reject("ja4_header", "ja4_header has " + weir::config::shown(name) +
                                             ", which is no name of a header");
    const weir::ja4_header told({.trusted = chosen.basic.trusted_proxies, .header = name});
    of.ja4_told = [told](const weir::request& by) {
        const auto found = told(by);
        return found ? found.bytes() : std::string_view();
    };
#else
    if (of.chosen.ja4 || !name.empty())
        from.reject(of.chosen.ja4 ? "ja4" : "ja4_header",
                    "this program was built without fingerprints");
#endif
}

void site::warn_without_ja4(weir::config::document& from, const server_settings& of) const
{
    for (const auto& each : locations) {
        if (std::ranges::find(of.locations, each.chosen.name) == of.locations.end()) continue;
        for (const auto& name : each.chosen.plugins)
            for (const auto& one : plugins)
                if (one.name == name && one.without_ja4)
                    one.without_ja4(from.root().child("plugins").child(name), of.name);
    }
}

const server_site* site::at(std::string_view addr) const noexcept
{
    const auto found = std::ranges::find(
        servers, addr, [](const server_site& one) { return std::string_view(one.chosen.addr); });
    return found == servers.end() ? nullptr : &*found;
}

}  // namespace proxy
