// SPDX-License-Identifier: BSL-1.0

// Any lines: the value of a cookie is the one that a slow reference finds, and every promise in
// reference/field_case.hpp holds. The low bit of the first byte: whether the lines lost their
// order.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "reference/field_case.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    if (size == 0) return 0;
    const std::string text(data + 1, data + size);
    const auto        wrong = reference::wrong_cookie(data[0] % 2 == 0, text);
    if (wrong.empty()) return 0;
    std::fprintf(stderr, "cookie: %s\n", wrong.c_str());
    std::abort();
}
