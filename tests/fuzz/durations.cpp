// SPDX-License-Identifier: BSL-1.0

// Any text: it is a duration or there is a reason why not; a duration's own text means the same;
// and digits, units and nothing else are what was read.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "weir/config/duration.hpp"

namespace {

void unless(bool held, const char* promise)
{
    if (held) return;
    std::fprintf(stderr, "durations: not so: %s\n", promise);
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    using namespace weir::config;
    const std::string text(data, data + size);
    const auto        read  = parse_duration(text);
    const auto        fault = duration_fault(text);
    unless(read.has_value() == fault.empty(), "a fault exactly when nothing is read");
    if (!read) return 0;

    unless(read->count() >= 0, "no duration is negative");
    unless(parse_duration(duration_text(*read)) == read, "its text is read as the same");
    unless(text.find_first_not_of("0123456789dhmsun") == text.npos, "digits and units alone");
    return 0;
}
