// SPDX-License-Identifier: BSL-1.0
#pragma once

// One thread and what belongs to it: its connections, idle links, clock and figures. Nothing here
// is touched by another thread but what says so.

#include "access_log.hpp"
#include "link.hpp"
#include "net.hpp"
#include "site.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include <boost/intrusive/list.hpp>

namespace proxy {

using steady_time = std::chrono::steady_clock::time_point;

/// Any thread may read them; one writes, so that no atomic addition is needed.
class figure {
public:
    void add(std::int64_t n) noexcept { value_.store(read() + n, std::memory_order_relaxed); }
    std::int64_t read() const noexcept { return value_.load(std::memory_order_relaxed); }

private:
    std::atomic<std::int64_t> value_ = 0;
};

struct lane_figures {
    figure connections;  ///< Of clients, open at present.
    figure requests;
    figure answered;  ///< By a plugin.
    figure cache_hits;
    figure failures;  ///< 502 and 504 for want of the upstream.
    figure permits;   ///< Places of inflight limits held at present.
};

class session;
using session_hook =
    boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

struct lane {
    explicit lane(state& of) : lasting(of) {}

    asio::io_context            context{1};  // one thread runs it; others only post
    state&                      lasting;
    std::shared_ptr<const site> current;
    link_pool                   idle;
    access_log                  log;
    lane_figures                figures;
    steady_time                 now      = std::chrono::steady_clock::now();  ///< Of the last tick.
    std::string                 date     = {};  ///< IMF-fixdate (RFC 9110 section 5.6.7).
    std::string                 time     = {};  ///< For the access log.
    bool                        stopping = false;

    boost::intrusive::list<session_hook, boost::intrusive::constant_time_size<false>> open;
};

}  // namespace proxy
