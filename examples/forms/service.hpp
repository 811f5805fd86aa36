// SPDX-License-Identifier: BSL-1.0
#pragma once

// What the routes share: one of it in a process. And how a coroutine waits for a database.

#include "gate.hpp"
#include "settings.hpp"
#include "storage/directory.hpp"
#include "storage/health.hpp"
#include "storage/records.hpp"
#include "storage/worker.hpp"

#include "weir/extract/client_ip.hpp"

#include <functional>
#include <memory>
#include <string>

#include <boost/asio/awaitable.hpp>

namespace forms {

/// Throws storage_error, std::runtime_error and std::invalid_argument if it cannot start.
struct service {
    explicit service(const settings& from);

    /// Looks for endpoints that other processes on this database changed, and so whether it works.
    void look_around();

    settings                 chosen;
    health                   state{"the storage"};
    std::unique_ptr<storage> database;
    writer                   keeper;  ///< Of submissions.
    worker                   desk;    ///< What the operator asks and does.
    directory                endpoints;
    weir::client_ip          source;
    std::unique_ptr<gate>    limits;
    std::function<void()>    on_kept = [] {};  ///< Called after a commit that queued a delivery.
};

/// Both resume where they were asked. True: it is on the disk, or was read. False: the database
/// failed. Until then everything that is borrowed must stay.
boost::asio::awaitable<bool> kept_by(writer& whom, keeping& one);
boost::asio::awaitable<bool> done_by(worker& whom, worker::work what);

/// The present instant as text: 2026-01-31T12:00:30.123Z.
std::string timestamp(weir::instant at);

/// 36 characters that sort by time and that nobody guesses: a UUID of version 7 (RFC 9562).
std::string new_submission_id(weir::instant at);

}  // namespace forms
