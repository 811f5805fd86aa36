// SPDX-License-Identifier: BSL-1.0

// Any stream: the PROXY header is the one that a slow reference reads, however the bytes arrive,
// and every promise in reference/proxy_header.hpp holds. The first byte, in eights: the most bytes.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "reference/proxy_header.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    if (size == 0 || size > 4096) return 0;
    const std::string text(data + 1, data + size);
    const auto        wrong = reference::wrong_proxy(text, data[0] * std::size_t{8});
    if (wrong.empty()) return 0;
    std::fprintf(stderr, "proxy_protocol: %s\n", wrong.c_str());
    std::abort();
}
