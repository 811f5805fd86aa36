// SPDX-License-Identifier: BSL-1.0
#pragma once

// A configuration in force: what a request needs to find its way. A reload makes another one;
// exchanges under way end on theirs.

#include "access_log.hpp"
#include "cache.hpp"
#include "filter.hpp"
#include "net.hpp"
#include "origin.hpp"
#include "settings.hpp"

#include "weir/config/document.hpp"
#include "weir/config/told_once.hpp"
#include "weir/extract/client_ip.hpp"
#include "weir/extract/trusted_peers.hpp"
#include "weir/http/counters.hpp"
#include "weir/http/shadow_log.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace proxy {

class shared_stores;
struct lane_figures;

/// What outlives configurations: counts, figures, kept responses. Thread-safe but for `stores`,
/// which is made with the first configuration.
struct state {
    explicit state(const weir::http::counters_options& sizes);
    ~state();

    std::unique_ptr<shared_stores> stores;  // before the counts that lie in them
    weir::http::counters           counters;
    origins                        known;
    response_cache                 cache;
    weir::config::told_once        told;

    /// The log of a plugin; the same one after a reload.
    weir::http::shadow_log& shadow(const std::string& plugin, const std::string& category);
    void                    flush_shadows();

    std::vector<const lane_figures*> boards;  ///< Of each thread; made before they start.

    std::mutex                                                     mutex;
    std::map<std::string, std::unique_ptr<weir::http::shadow_log>> shadows;  ///< Under `mutex`.
};

/// A plugin, ready to be a filter. What it is, in a line, for `-t`.
struct plugin {
    std::string            name  = {};
    weir::http::limit_step step  = weir::http::limit_step::request;
    filter                 use   = {};
    std::string            about = {};

    /// Warns at its table that a server has no fingerprints; null if it does not go by them.
    std::function<void(const weir::config::table&, std::string_view server)> without_ja4 = {};
};

struct location {
    location_settings               chosen  = {};
    std::shared_ptr<const upstream> to      = {};
    filter_chain                    arrival = {};  ///< step = "request"
    filter_chain                    onward  = {};  ///< step = "proxy_upstream", behind the cache
};

struct server_site {
    server_settings                     chosen    = {};
    std::vector<const location*>        by_length = {};  ///< The longest prefix first.
    std::shared_ptr<asio::ssl::context> tls       = {};  ///< Null: plain.

    /// The fingerprint that a trusted peer tells of its client, empty if it is none. Borrows from
    /// the request. Null: peers are not asked.
    std::function<std::string_view(const weir::request&)> ja4_told = {};

    /// None if no prefix fits. A path that has other spellings is looked up by its plain one.
    [[nodiscard]] const location* find(std::string_view target) const;
};

/// Immutable, hence thread-safe.
class site {
public:
    /// Tells the document what is wrong, and is then not to be used.
    site(weir::config::document& from, const settings& chosen, state& lasting);

    settings                        chosen;
    weir::client_ip                 source;
    std::vector<plugin>             plugins;
    std::vector<location>           locations;
    std::vector<server_site>        servers;
    std::shared_ptr<const log_file> log;

    /// The server of a socket; none if this configuration has none there.
    [[nodiscard]] const server_site* at(std::string_view addr) const noexcept;

    /// Whether what this peer says of others is to be believed.
    [[nodiscard]] bool trusts(const weir::peer& one) const noexcept { return trusted_.hold(one); }

private:
    void make_locations(weir::config::document& from, state& lasting);
    void make_servers(weir::config::document& from);
    void find_fingerprints(const weir::config::table& from, server_site& of) const;
    void warn_without_ja4(weir::config::document& from, const server_settings& at) const;

    weir::trusted_peers trusted_;
};

}  // namespace proxy
