// SPDX-License-Identifier: BSL-1.0
#pragma once

// Which process made something that a fork copies without making it work: threads are gone in the
// child, a lock may be held by nobody, and a connection would be used by two.

#include <sys/types.h>
#include <unistd.h>

namespace weir::remote {

/// Immutable, hence thread-safe. A look is a system call.
class birthplace {
public:
    [[nodiscard]] bool here() const noexcept { return ::getpid() == process_; }

private:
    pid_t process_ = ::getpid();
};

}  // namespace weir::remote
