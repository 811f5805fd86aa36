// SPDX-License-Identifier: BSL-1.0

// Any keys of a limit or a restriction: they are refused with an error, or what they say can be
// made without one. The first byte chooses the kind.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "weir/config/limits.hpp"
#include "weir/http/limit.hpp"

namespace {

using namespace weir;
using config::document;
using config::table;

/// Reads one table and makes a `Filter` of what was read.
template <class Filter, class Read>
void try_one(const document& doc, const table& from, const Read& read)
{
    const auto found = read(from);
    if (found.has_value() != doc.ok()) {
        std::fprintf(stderr, "toml_limits: read, with errors, or not, without:\n%s",
                     to_string(doc.errors()).c_str());
        std::abort();
    }
    if (found) static_cast<void>(Filter(*found));
}

/// Without the sizes that are too much for a test.
void try_limit(const document& doc, const table& from)
{
    const auto found = config::read_limit(from);
    if (found.has_value() != doc.ok()) std::abort();
    if (!found || found->type == http::limit_type::inflight) return;
    http::check(*found);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    if (size == 0) return 0;
    const std::string keys(data + 1, data + size);
    auto              doc  = document::parse("[plugins.x]\n" + keys, "fuzz.toml");
    const auto        from = doc.root().child("plugins").child("x");
    if (!doc.ok()) return 0;
    try {
        switch (data[0] % 6) {
        case 0:
            try_limit(doc, from);
            break;
        case 1:
            try_one<http::ip_restriction>(doc, from, config::read_ip_restriction);
            break;
        case 2:
            try_one<http::ua_restriction>(doc, from, config::read_ua_restriction);
            break;
        case 3:
            try_one<http::referer_restriction>(doc, from, config::read_referer_restriction);
            break;
        case 4:
            try_one<http::uri_block>(doc, from, config::read_uri_block);
            break;
        case 5:
            try_one<http::ja4_restriction>(doc, from, config::read_ja4_restriction);
            break;
        }
    } catch (const std::exception& wrong) {
        std::fprintf(stderr, "toml_limits: loaded, but %s\n", wrong.what());
        std::abort();
    }
    doc.warn_of_strangers();
    return 0;
}
