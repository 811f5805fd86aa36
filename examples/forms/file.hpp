// SPDX-License-Identifier: BSL-1.0
#pragma once

// A file whose every failure is told.

#include "storage/records.hpp"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace forms {

/// Open until it is destroyed; throws storage_error with what the system says. Only for its owner
/// to read, if it is made here.
class file {
public:
    file(std::string path, int flags)
        : path_(std::move(path)), number_(::open(path_.c_str(), flags, 0600))
    {
        if (number_ < 0) fail("open");
    }
    ~file() { ::close(number_); }
    file(const file&)            = delete;
    file& operator=(const file&) = delete;

    /// Until the file is closed; waits while another process has it.
    void lock()
    {
        while (::flock(number_, LOCK_EX) != 0)
            if (errno != EINTR) fail("lock");
    }

    void write(std::string_view bytes)
    {
        while (!bytes.empty()) {
            const auto count = ::write(number_, bytes.data(), bytes.size());
            if (count < 0 && errno == EINTR) continue;
            if (count <= 0) fail("write");
            bytes.remove_prefix(static_cast<std::size_t>(count));
        }
    }

    /// A crash in the middle of a line leaves it without an end; the next must not be glued to it.
    void end_line()
    {
        char       last = '\n';
        const auto size = ::lseek(number_, 0, SEEK_END);
        if (size > 0 && ::pread(number_, &last, 1, size - 1) == 1 && last != '\n') write("\n");
    }

    void sync()
    {
        if (::fdatasync(number_) != 0) fail("sync");
    }

private:
    [[noreturn]] void fail(const char* what) const
    {
        throw storage_error(std::string("cannot ") + what + ' ' + path_ + ": " +
                            std::strerror(errno));
    }

    std::string path_;
    int         number_;
};

}  // namespace forms
