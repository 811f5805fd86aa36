// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a form was sent with, and what is wrong with it.

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace signup {

/// Fields of application/x-www-form-urlencoded, as the URL standard reads it; the first of a name.
class fields {
public:
    /// None if there are more than a hundred.
    [[nodiscard]] static std::optional<fields> parse(std::string_view body);

    /// Empty if there is none.
    [[nodiscard]] const std::string& operator[](std::string_view name) const;

private:
    std::map<std::string, std::string, std::less<>> values_;
};

/// What stands in the form; every value exactly as it was sent, for handing it back.
struct entries {
    std::string email = {};
    std::string name  = {};
    std::string about = {};
};

/// What is wrong with each, in words for who filled it in; empty if nothing.
struct complaints {
    std::string email = {};
    std::string name  = {};
    std::string about = {};

    [[nodiscard]] bool any() const { return !email.empty() || !name.empty() || !about.empty(); }
};

[[nodiscard]] entries    entries_of(const fields& sent);
[[nodiscard]] complaints complaints_of(const entries& sent);

/// As text that can be shown: U+FFFD for what is not UTF-8, and for control characters but those of
/// layout.
[[nodiscard]] std::string readable(std::string_view text);

constexpr std::size_t most_name = 200, most_about = 4000;  ///< In characters.

}  // namespace signup
