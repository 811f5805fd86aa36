// SPDX-License-Identifier: BSL-1.0

// TOML by toml++, turned into a tree of our own.

#include "node.hpp"
#include "screen.hpp"

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>

// The parser's release 3.3 asserts, or with NDEBUG assumes, what a wrong text makes false (`[!]`)
// and then looks for it all the same: without either it tells an error. A name of its own keeps it
// apart from one that the program has with other settings.
#undef NDEBUG
#undef TOML_HEADER_ONLY
#define TOML_HEADER_ONLY 1  // a shared one has other settings
#define TOML_ASSERT(expr) static_cast<void>(0)
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 64  // its readers, its destructors and ours are recursive
#define toml weir_config_toml
#include <toml++/toml.h>

namespace weir::config {
namespace {

/// Turns what the parser found into a tree with the places that were written.
class translation {
public:
    explicit translation(const screened& of) : of_(of) {}

    [[nodiscard]] place place_of(const toml::source_position& at) const noexcept
    {
        return of_.written(
            {static_cast<std::uint32_t>(at.line), static_cast<std::uint32_t>(at.column)});
    }

    [[nodiscard]] node::fields fields_of(const toml::table& from) const
    {
        node::fields out;
        for (const auto& [key, value] : from) {
            auto& field  = out.of.emplace_back(node_of(value));
            field.key    = key.str();
            field.key_at = place_of(key.source().begin);
        }
        std::ranges::stable_sort(out.of, {}, &node::key_at);  // the parser keeps them by name
        return out;
    }

private:
    [[nodiscard]] node::list list_of(const toml::array& from) const
    {
        node::list out;
        for (const auto& element : from) out.push_back(node_of(element));
        return out;
    }

    [[nodiscard]] node node_of(const toml::node& from) const
    {
        node out;
        out.at = place_of(from.source().begin);
        from.visit([&](const auto& value) {
            using type = decltype(value);
            if constexpr (toml::is_table<type>) out.is = fields_of(value);
            else if constexpr (toml::is_array<type>) out.is = list_of(value);
            else if constexpr (toml::is_string<type> || toml::is_integer<type> ||
                               toml::is_floating_point<type> || toml::is_boolean<type>)
                out.is = value.get();
            else {
                std::ostringstream text;
                text << value.get();
                out.is = node::other{text.str()};
            }
        });
        return out;
    }

    const screened& of_;
};

}  // namespace

void parse_toml(std::string_view text, parsed& into)
{
    const auto fit = screen(text);
    if (!fit.fault.empty()) return into.add(into.errors, fit.at, "", fit.fault);

    const auto result = toml::parse(fit.text);
    if (result) {
        into.root = {.at = {1, 1}, .is = translation(fit).fields_of(result.table())};
        return;
    }
    const auto& error = result.error();
    into.add(into.errors, translation(fit).place_of(error.source().begin), "",
             std::string(error.description()));
}

}  // namespace weir::config
