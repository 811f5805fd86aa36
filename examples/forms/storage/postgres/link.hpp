// SPDX-License-Identifier: BSL-1.0
#pragma once

// A connection that is mended. Connecting may take long, so a thread of its own does it, which
// exists only while there is no connection.

#include "storage/postgres/session.hpp"

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace forms::postgres {

/// For one thread at a time.
class link {
public:
    using time_point = session::time_point;

    /// Throws lost if there is no server to talk to.
    explicit link(std::string conninfo);
    ~link();
    link(const link&)            = delete;
    link& operator=(const link&) = delete;

    /// As that of a session. After a connection was lost, waits up to the deadline for the first
    /// attempt to connect again; while those fail it throws at once: an outage shall be told, not
    /// waited for.
    rows run(const char* sql, const std::vector<std::string>& values, time_point until);

private:
    session& ready(time_point until);
    void     lose();
    void     mend() noexcept;
    bool     tries(std::unique_lock<std::mutex>& held) noexcept;

    std::string              conninfo_;
    std::unique_ptr<session> session_;
    std::thread              mender_;

    std::mutex               mutex_;
    std::condition_variable  changed_;
    std::unique_ptr<session> fresh_;  // connected, and not taken over yet
    std::string              why_;    // the last attempt failed; empty before it is over
    bool                     over_ = false;
};

}  // namespace forms::postgres
