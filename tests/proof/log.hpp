// SPDX-License-Identifier: BSL-1.0
#pragma once

// The log of one process of the proof: lines of words, for check.py. Numbers are decimal; instants
// that the server told are nanoseconds since 1970, `start` and `end` are CLOCK_MONOTONIC, which all
// processes of a machine share.
//
//   rule   ID POLICY LIMIT WINDOW BURST KIND     a limiter
//   ask    ID KEY COST ADMITTED BASIS LEFT RESET AT START END
//   chain  N ADMITTED                            the N asks that follow, by and_then
//   set    N ADMITTED REFUSERS START END         the N parts that follow, by admit_all
//   part   ID KEY COST ADMITTED BASIS LEFT RESET AT
//   back   ID KEY UNITS START END                given back
//   charge ID KEY UNITS START END                charged, whether it fits or not
//   look   ID KEY LEFT BASIS                     when all had ended

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "weir/decision.hpp"

namespace proof {

using clock = std::chrono::steady_clock;

struct span {
    clock::time_point start = clock::now();
    clock::time_point end   = {};

    void close() noexcept { end = clock::now(); }
};

/// A file that any number of threads append to, a block at a time.
class log_file {
public:
    explicit log_file(const char* path) : file_(open(path, O_WRONLY | O_CREAT | O_APPEND, 0644))
    {
        if (file_ < 0) std::abort();
    }
    ~log_file() { close(file_); }
    log_file(const log_file&)            = delete;
    log_file& operator=(const log_file&) = delete;

    /// In one piece: no disk is so full that a proof could go on without its log.
    void append(const std::string& block) const
    {
        if (write(file_, block.data(), block.size()) != static_cast<ssize_t>(block.size()))
            std::abort();
    }

private:
    int file_;
};

/// The lines of one thread. What belongs together is written together: see `entry_over`.
class log {
public:
    explicit log(const log_file& to) : to_(&to) {}
    ~log() { to_->append(lines_); }
    log(const log&)            = delete;
    log& operator=(const log&) = delete;

    template <class... Word>
    void line(const char* kind, const Word&... words)
    {
        lines_ += kind;
        ((lines_ += ' ', put(words)), ...);
        lines_ += '\n';
    }

    /// Where a block of the file may end.
    void entry_over()
    {
        if (lines_.size() < 64 * 1024) return;
        to_->append(lines_);
        lines_.clear();
    }

private:
    void put(const std::string& word) { lines_ += word; }
    void put(const char* word) { lines_ += word; }
    template <std::integral Number>
    void put(Number number)
    {
        lines_ += std::to_string(number);
    }
    void put(weir::instant at) { put(at.time_since_epoch().count()); }
    void put(const span& of)
    {
        put(of.start.time_since_epoch().count());
        lines_ += ' ';
        put(of.end.time_since_epoch().count());
    }
    void put(const weir::decision& made)
    {
        put(made.cost), lines_ += ' ';
        put(int{bool(made)}), lines_ += ' ';
        put(int{static_cast<std::uint8_t>(made.basis)}), lines_ += ' ';
        put(made.left), lines_ += ' ';
        put(made.reset_after.count()), lines_ += ' ';
        put(made.at);
    }

    const log_file* to_;
    std::string     lines_;
};

}  // namespace proof
