// SPDX-License-Identifier: BSL-1.0

// Any line, both grammars: the elements are those that a slow reference cuts out, and each names
// the address that the reference reads. The low bit of the first byte: RFC 7239, else a plain list.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "reference/client_case.hpp"

namespace {

std::string wrong_element(const std::string& element, bool forwarded)
{
    const auto grammar = forwarded ? weir::list_grammar::forwarded : weir::list_grammar::plain;
    auto slow = forwarded ? reference::read_forwarded(element) : reference::read_endpoint(element);
    if (slow && !reference::specified(*slow)) slow.reset();
    return reference::packet(read_element(element, grammar)) == slow ? "" : "another address";
}

std::string wrong_line(const std::string& line, bool forwarded)
{
    const auto grammar = forwarded ? weir::list_grammar::forwarded : weir::list_grammar::plain;
    const std::vector<weir::header_line> lines = {{"Forwarded", line}};
    const weir::request                  seen(lines, {});
    weir::element_walk                   walk(seen, "forwarded", grammar);

    int taken = 0;
    for (const auto& element : reference::tokens(line, forwarded)) {
        if (element.empty()) continue;
        const auto next = walk.next();
        if (++taken > weir::element_walk::most_elements)
            return next || !walk.cut() ? "more elements than are read" : "";
        if (next != element) return "another element";
        if (const auto wrong = wrong_element(element, forwarded); !wrong.empty()) return wrong;
    }
    return walk.next() || walk.cut() ? "an element too many" : "";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    if (size == 0 || size > 1024) return 0;  // the reference takes more than square time
    const std::string line(data + 1, data + size);
    const bool        forwarded = data[0] % 2 == 1;
    auto              wrong     = wrong_line(line, forwarded);
    if (wrong.empty()) wrong = wrong_element(line, forwarded);  // as an element, blanks and all
    if (wrong.empty()) return 0;
    std::fprintf(stderr, "forwarded: %s\n", wrong.c_str());
    std::abort();
}
