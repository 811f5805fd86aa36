// SPDX-License-Identifier: BSL-1.0
#pragma once

// What the routes share: one of it in a process. And how a coroutine waits for a disk.

#include "gate.hpp"
#include "settings.hpp"
#include "storage/directory.hpp"
#include "storage/worker.hpp"

#include "weir/extract/client_ip.hpp"

#include <functional>
#include <memory>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>

namespace forms {

/// Throws storage_error, and std::invalid_argument, if it cannot start.
struct service {
    explicit service(const settings& from);

    settings              chosen;
    worker                writer;
    worker                reader;
    directory             endpoints;
    weir::client_ip       source;
    std::unique_ptr<gate> limits;
    std::function<void()> on_kept = [] {};  ///< Called after a commit that queued a delivery.

    boost::asio::thread_pool waiting;  ///< Where limits are asked whose answers wait for a disk.
};

/// Does this in a transaction of the worker and resumes where it was asked, after the commit. False
/// if nothing was kept. Until then everything that `what` borrows must stay.
boost::asio::awaitable<bool> done_by(worker& whom, worker::work what);

/// The present instant as text: 2026-01-31T12:00:30.123Z.
std::string timestamp(weir::instant at);

/// 36 characters that sort by time and that nobody guesses: a UUID of version 7 (RFC 9562).
std::string new_submission_id(weir::instant at);

}  // namespace forms
