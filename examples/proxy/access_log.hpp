// SPDX-License-Identifier: BSL-1.0
#pragma once

// One line for each exchange, without anything of a person: no address, no path, no query.
//
//     2026-08-24T12:00:30Z GET api 200 1234 0.000812
//
// (method, location, status, bytes of the body's content to the client, seconds). The address comes
// last, by its prefix, if the operator asks for it.

#include "weir/extract/client.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace proxy {

struct exchange_record {
    std::string_view    method   = {};
    std::string_view    location = {};
    int                 status   = 0;
    std::uint64_t       bytes    = 0;
    std::int64_t        micros   = 0;
    const weir::client* client   = nullptr;  ///< Null: not told.
};

/// A file that lines are appended to. Thread-safe: a write is one call of the system.
class log_file {
public:
    /// A path or `stdout`. Throws std::runtime_error if it cannot be opened.
    explicit log_file(const std::string& path);
    ~log_file();
    log_file(const log_file&)            = delete;
    log_file& operator=(const log_file&) = delete;

    void write(std::string_view lines) const noexcept;

private:
    int file_ = -1;
};

/// The lines of one thread, gathered until its next tick. Not thread-safe.
class access_log {
public:
    /// Null: nothing is kept. What was gathered goes to where it was meant for.
    void open(std::shared_ptr<const log_file> to);
    ~access_log() { flush(); }

    [[nodiscard]] bool on() const noexcept { return to_ != nullptr; }
    void               tell(const exchange_record& one, std::string_view time);
    void               flush() noexcept;

private:
    std::shared_ptr<const log_file> to_;
    std::string                     lines_;
};

}  // namespace proxy
