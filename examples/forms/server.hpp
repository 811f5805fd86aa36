// SPDX-License-Identifier: BSL-1.0
#pragma once

// The listening socket and the threads. A connection stays on the thread that it was given to.

#include "service.hpp"

#include <memory>
#include <string>

namespace forms {

/// Throws std::runtime_error if it cannot listen.
class server {
public:
    explicit server(service& with);
    ~server();

    /// Where it listens, the real port in it: `http://127.0.0.1:8080`, or `unix:PATH`.
    [[nodiscard]] const std::string& address() const noexcept { return address_; }

    void start();

    /// Takes no more connections, answers the requests that have begun (for as long as the settings
    /// say), and ends the threads.
    void stop();

private:
    struct parts;

    std::unique_ptr<parts> parts_;
    std::string            address_;
};

}  // namespace forms
