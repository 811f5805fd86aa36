// SPDX-License-Identifier: BSL-1.0

// The beginning of any connection: what its records carry is what a slow reference reads, fed whole
// and in pieces. The first byte: longest message, and how the pieces are drawn.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "reference/slow_hello.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    if (size == 0 || size > 4096) return 0;
    const std::string    stream(data + 1, data + size);
    const std::size_t    most = (data[0] & 1) != 0 ? 512 : 4096;
    reference::generator random(data[0]);
    const auto           wrong = reference::wrong_records(stream, most, random);
    if (wrong.empty()) return 0;
    std::fprintf(stderr, "tls_records: %s\n", wrong.c_str());
    std::abort();
}
