// SPDX-License-Identifier: BSL-1.0
#pragma once

// The listening sockets and the threads. A connection stays on the thread that it was given to.

#include "site.hpp"

#include <memory>
#include <string>
#include <vector>

namespace proxy {

class server {
public:
    /// Listens at the addresses of the site. Throws std::runtime_error if it cannot.
    server(state& lasting, std::shared_ptr<const site> first);
    ~server();

    /// `web http://127.0.0.1:6188`, with the port that was chosen where it says 0.
    [[nodiscard]] const std::vector<std::string>& addresses() const noexcept { return addresses_; }

    void start();

    /// For requests from now on. The sockets stay as they are.
    void use(std::shared_ptr<const site> next);

    /// Takes no more connections, ends the exchanges that have begun (for as long as the settings
    /// say), and ends the threads.
    void stop();

private:
    struct parts;

    std::unique_ptr<parts>   parts_;
    std::vector<std::string> addresses_;
};

}  // namespace proxy
