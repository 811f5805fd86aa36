// SPDX-License-Identifier: BSL-1.0

// Any header lines, eight ways to trust, eight peers, both grammars: the client is the one that a
// slow reference finds, and every promise in reference/client_case.hpp holds.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "reference/client_case.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    if (size > 4096) return 0;  // the reference takes more than square time
    const auto it = reference::case_from(data, size);
    if (!it) return 0;
    const auto wrong = reference::wrong(*it);
    if (wrong.empty()) return 0;
    std::fprintf(stderr, "client_ip: %s\n", wrong.c_str());
    std::abort();
}
