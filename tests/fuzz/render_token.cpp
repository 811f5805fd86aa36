// SPDX-License-Identifier: BSL-1.0

// Any text as a token: it is taken only if it is what was issued, letter by letter. The first eight
// bytes are the instant of the check.

#include "weir/forms/render_token.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

const weir::render_token tokens({.secret = "a secret of thirty-two bytes...."});

/// The one text that passes in tests/unit/forms/render_token.test.cpp.
constexpr std::string_view known =
    "ARiHrKQzNgAAAAECAwQFBgcICQoLDA0OD-PXX_2glUBTF3XDnXtnpT4Vk6qdthaFdmtde1De_ttl";

[[noreturn]] void fail(const char* what)
{
    std::fprintf(stderr, "render_token: %s\n", what);
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    if (size < 8) return 0;
    std::int64_t ticks = 0;
    std::memcpy(&ticks, data, sizeof ticks);
    const weir::instant    at{weir::duration(ticks)};
    const std::string_view text(reinterpret_cast<const char*>(data + 8), size - 8);
    const weir::parts      mine("apply", "198.51.100.4");

    const auto found = tokens.check(text, mine, at);
    if (found.genuine() != (text == known)) fail("a text that was not issued, or the reverse");
    if (tokens.check(text, "apply", at).genuine()) fail("a token of another subject");
    if (found && (found.age < std::chrono::seconds(3) || found.age > std::chrono::hours(2)))
        fail("an age out of bounds");

    const auto fresh = tokens.issue(text, at);
    if (fresh.size() != weir::render_token::length) fail("a token of another length");
    if (!tokens.check(fresh, text, at).genuine()) fail("what was issued is not taken");
    if (tokens.check(fresh, text, at).verdict != weir::token_verdict::too_young)
        fail("a token of this moment is not too young");
    return 0;
}
