// SPDX-License-Identifier: BSL-1.0
#pragma once

// Links in mails. Their code is the mail's id, which the database and mail servers know, and an
// HMAC-SHA-256 of it, which they do not: whoever reads the database can confirm nothing.

#include <optional>
#include <string>
#include <string_view>

namespace signup {

/// Immutable, hence thread-safe.
class links {
public:
    links(std::string base, std::string_view secret);

    [[nodiscard]] std::string code(std::string_view mail_id) const;
    [[nodiscard]] std::string to(std::string_view page, std::string_view mail_id) const
    {
        return base_ + '/' + std::string(page) + "?code=" + code(mail_id);
    }
    [[nodiscard]] const std::string& base() const noexcept { return base_; }

    /// The mail's id, if the code was made here. Constant time in what the code says.
    [[nodiscard]] std::optional<std::string> mail_of(std::string_view code) const;

private:
    std::string base_, key_;
};

/// Constant time in what they say.
[[nodiscard]] bool same_secret(std::string_view one, std::string_view other) noexcept;

}  // namespace signup
