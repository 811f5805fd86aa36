// SPDX-License-Identifier: BSL-1.0
#pragma once

// The tree of a parsed file, free of the parser's types: only toml.cpp sees those.

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weir/config/document.hpp"

namespace weir::config {

/// What is written at one place.
struct node {
    using list = std::vector<node>;

    struct fields {
        list of = {};  // each with its key, in the order of the file
    };
    struct other {  // a date or a time, which nobody asks for
        std::string text;
    };

    place                                                                      at = {};
    std::variant<std::string, std::int64_t, double, bool, other, list, fields> is;

    std::string key    = {};  // if it is a field
    place       key_at = {};

    mutable std::set<std::string, std::less<>> asked   = {};  // keys that readers know
    mutable bool                               skipped = false;

    const node* find(std::string_view wanted) const noexcept;
};

/// What a document keeps.
struct parsed {
    std::string          name     = {};
    node                 root     = {.at = {}, .is = node::fields{}};
    std::vector<finding> errors   = {};
    std::vector<finding> warnings = {};

    void add(std::vector<finding>& to, place at, std::string table, std::string text) const;
};

/// The tree of `text`, or an error in `into` and an empty tree.
void parse_toml(std::string_view text, parsed& into);

}  // namespace weir::config
