// SPDX-License-Identifier: BSL-1.0

// Any handshake bytes: the hello and its fingerprints are those that a slow reference reads, of the
// whole and of its beginnings. The first byte: transport, longest message, where it is cut.

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
    const char           transport = "tqdt"[data[0] & 3];
    const std::size_t    most      = (data[0] & 4) != 0 ? 512 : 65'536;
    reference::generator random(data[0]);
    const auto           wrong = reference::wrong_hello(stream, transport, most, random);
    if (wrong.empty()) return 0;
    std::fprintf(stderr, "client_hello: %s\n", wrong.c_str());
    std::abort();
}
