// SPDX-License-Identifier: BSL-1.0
#pragma once

// The one way in which wrong options are told: at construction or enrolment, never later.

#include <string>

#if defined(__cpp_exceptions)
#include <stdexcept>
#else
#include <cstdio>
#include <cstdlib>
#endif

namespace weir::detail {

/// Throws std::invalid_argument("weir: " + what); ends the program where exceptions are off.
[[noreturn]] inline void invalid(const std::string& what)
{
#if defined(__cpp_exceptions)
    throw std::invalid_argument("weir: " + what);
#else
    std::fputs(("weir: " + what + "\n").c_str(), stderr);
    std::abort();
#endif
}

}  // namespace weir::detail
