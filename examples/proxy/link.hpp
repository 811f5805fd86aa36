// SPDX-License-Identifier: BSL-1.0
#pragma once

// A connection to an origin, and the pool of those that are idle. A read is always under way, also
// while it is idle, so one that the origin closes leaves the pool at once.

#include "net.hpp"
#include "origin.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

namespace proxy {

/// Whose exchange a link serves. Called on the link's thread.
class link_user {
public:
    virtual void connected(const error_code& failed) = 0;
    virtual void received(const error_code& failed)  = 0;  ///< More bytes, or there will be none.
    virtual void sent(const error_code& failed)      = 0;  ///< What `send` left for later.

protected:
    ~link_user() = default;
};

enum class sending : std::uint8_t { done, later, failed };

class link_pool;

/// Not thread-safe: all of it is on one thread. It keeps its user until it is closed or idle.
class link : public std::enable_shared_from_this<link> {
public:
    static constexpr std::size_t room = 32'768;  ///< The longest response head.

    link(asio::io_context& on, std::shared_ptr<origin> to);
    ~link();
    link(const link&)            = delete;
    link& operator=(const link&) = delete;

    void serve(std::shared_ptr<link_user> user) noexcept;
    void connect();

    /// The bytes must stay until it is done. `later` is told to the user.
    [[nodiscard]] sending send(const std::array<asio::const_buffer, 2>& what);
    void                  receive();
    void                  close() noexcept;

    [[nodiscard]] std::string_view bytes() const noexcept
    {
        return {buffer_.get() + begin_, end_ - begin_};
    }
    [[nodiscard]] char* data() noexcept { return buffer_.get() + begin_; }
    [[nodiscard]] bool  full() const noexcept { return end_ - begin_ == room; }
    [[nodiscard]] bool  reused() const noexcept { return reused_; }
    [[nodiscard]] bool  is_sending() const noexcept { return sending_; }

    /// Whether nothing of a response to its present user has come.
    [[nodiscard]] bool                           silent() const noexcept { return silent_; }
    [[nodiscard]] const std::shared_ptr<origin>& to() const noexcept { return to_; }

    void consume(std::size_t count) noexcept;

private:
    friend class link_pool;

    void send_rest();
    void read_some(std::size_t count, const error_code& failed);

    tcp_socket                            socket_;
    std::shared_ptr<origin>               to_;
    std::shared_ptr<link_user>            user_;
    std::unique_ptr<char[]>               buffer_;
    std::size_t                           begin_ = 0, end_ = 0;
    std::array<asio::const_buffer, 2>     left_    = {};
    link_pool*                            pool_    = nullptr;  // that it is idle in
    bool                                  reading_ = false, sending_ = false, closed_ = false;
    bool                                  reused_ = false, silent_ = true;
    std::chrono::steady_clock::time_point idle_since_ = {};
};

/// The idle links of one thread, by the id of their origins.
class link_pool {
public:
    /// None if none is idle.
    [[nodiscard]] std::shared_ptr<link> take(const origin& to);

    /// Closes it if there are `most` already, or if it has said something that nobody asked for.
    void keep(std::shared_ptr<link> one, std::size_t most,
              std::chrono::steady_clock::time_point now);
    void drop(const link& one) noexcept;
    void drop_older_than(std::chrono::steady_clock::time_point then) noexcept;
    void clear() noexcept;

private:
    std::vector<std::vector<std::shared_ptr<link>>> idle_;
};

}  // namespace proxy
