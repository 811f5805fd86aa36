// SPDX-License-Identifier: BSL-1.0
#pragma once

// Mails the codes, on a thread of its own: a request does not wait for it, whoever it is for.

#include "accounts.hpp"
#include "settings.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

namespace signin {

/// Thread-safe. Into files NAME.eml of the outbox, each of them whole as soon as it is there; or to
/// a server by SMTP. What waits is in memory: a crash loses it, and its user asks again.
class mail {
public:
    static constexpr std::size_t most_waiting = 1'000;

    /// That a letter waits at least: the work for one shall not fall into the answer to the request
    /// that it is for, and be measured there.
    static constexpr std::chrono::milliseconds pause{200};

    /// Throws std::invalid_argument if the outbox cannot be made.
    mail(const settings& chosen, const accounts& known);
    ~mail();  ///< Delivers what waits, without the pause, for ten seconds at most.
    mail(const mail&)            = delete;
    mail& operator=(const mail&) = delete;

    /// Sends if the user has an account. That is looked up on the mail's thread, so that all
    /// requests do the same. Dropped, with a line on standard error, if too much waits.
    void post(std::string user, std::string code);

private:
    using clock = std::chrono::steady_clock;

    struct letter {
        std::string       user, code;
        clock::time_point due;
    };

    void                      work();
    void                      deliver(const letter& one);
    [[nodiscard]] std::string text_of(const letter& one, const std::string& id) const;
    void                      file(const std::string& text, const std::string& id) const;
    void                      send(const std::string& to, const std::string& text) const;

    const settings& chosen_;
    const accounts& known_;

    std::mutex              mutex_;
    std::condition_variable changed_;
    std::deque<letter>      waiting_;
    bool                    over_ = false;
    std::thread             worker_;
};

}  // namespace signin
