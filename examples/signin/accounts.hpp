// SPDX-License-Identifier: BSL-1.0
#pragma once

// Who may sign in: a file with one mail address a line, read at the start.

#include <string>
#include <string_view>
#include <unordered_set>

namespace signin {

/// One spelling of a mail address: without blanks around it, letters of ASCII small.
[[nodiscard]] std::string canonical_name(std::string_view as_sent);

/// Whether a canonical name can be an account at all: printable ASCII, 3 to 254 bytes, one @ with
/// something on either side, and nothing that has a meaning in a mail's header. So what looks alike
/// in other alphabets is never looked up, and needs no folding. Says nothing of whether it is one.
[[nodiscard]] bool can_be_account(std::string_view name);

/// Immutable, hence thread-safe.
class accounts {
public:
    /// Makes the file with one account in it if there is none. Lines that are empty or begin with #
    /// are skipped. Throws std::invalid_argument, naming the line, for one that cannot be an
    /// account, and for a file that cannot be read.
    explicit accounts(const std::string& path);

    [[nodiscard]] bool contains(const std::string& canonical) const
    {
        return known_.contains(canonical);
    }

private:
    std::unordered_set<std::string> known_;
};

}  // namespace signin
