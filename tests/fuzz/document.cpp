// SPDX-License-Identifier: BSL-1.0

// Any text as a configuration: it is read by every kind of question, all tables and lists of it,
// and each finding is one printable line with a place in the text.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "weir/config/document.hpp"
#include "weir/config/told_once.hpp"

namespace {

using namespace weir::config;

void unless(bool held, const char* promise)
{
    if (held) return;
    std::fprintf(stderr, "document: not so: %s\n", promise);
    std::abort();
}

void ask(const table& of, int deep)
{
    if (deep == 0) return;
    for (const auto& key : of.keys()) {
        unless(of.has(key), "a key that is listed is there");
        const auto before = of.errors();
        const bool text   = of.text(key).has_value();
        unless(text == (of.errors() == before), "a text, or one more error");
        const auto number = of.integer(key, 5, 0, 10);
        unless(number >= 0 && number <= 10, "a number is in its range");
        static_cast<void>(of.flag(key, false));
        static_cast<void>(of.duration(key, weir::duration(1)));
        static_cast<void>(of.one_of(key, "a", {"a", "b"}));
        static_cast<void>(of.texts(key));
        static_cast<void>(of.ranges(key));
        static_cast<void>(of.listen(key));
        static_cast<void>(of.secret(key, 16));
        for (const auto& one : of.list(key)) ask(one, deep - 1);
        ask(of.child(key), deep - 1);
    }
}

void check(const std::vector<finding>& all)
{
    for (const auto& one : all) {
        const auto line = to_string(one);
        unless(std::ranges::none_of(line, [](char c) { return (c >= 0 && c < ' ') || c == 0x7f; }),
               "a finding is one printable line");
        unless((one.at.line == 0) == (one.at.column == 0), "a place is whole or none");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    auto                   doc  = document::parse(text, "fuzz.toml");
    const auto             root = doc.root();
    const bool             good = doc.ok();
    if (size % 2 == 0) ask(root, 4);
    else static_cast<void>(root.children());
    doc.warn_of_strangers();
    unless(good || root.keys().empty(), "what is no TOML has no keys");
    check(doc.errors());
    check(doc.warnings());
    told_once told;
    static_cast<void>(told.fresh(doc.warnings()));
    unless(told.fresh(doc.warnings()).empty(), "what was told is not told again");
    return 0;
}
