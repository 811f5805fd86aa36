// SPDX-License-Identifier: BSL-1.0

#include "accounts.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace signin {

namespace {

constexpr const char* first_account =
    "# Who may sign in: one mail address a line. Read at the start.\n"
    "owner@example.org\n";

}  // namespace

std::string canonical_name(std::string_view as_sent)
{
    constexpr std::string_view blank = " \t\r\n\f\v";
    const auto                 first = as_sent.find_first_not_of(blank);
    if (first == as_sent.npos) return {};
    std::string name(as_sent.substr(first, as_sent.find_last_not_of(blank) - first + 1));
    for (auto& letter : name)
        if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    return name;
}

bool can_be_account(std::string_view name)
{
    if (name.size() < 3 || name.size() > 254) return false;
    const auto allowed = [](char letter) {
        return letter > ' ' && letter < '\x7f' &&
               std::string_view("<>()[]\\,;:\"").find(letter) == std::string_view::npos;
    };
    const auto at = name.find('@');
    return std::ranges::all_of(name, allowed) && at != name.npos && at > 0 &&
           at + 1 < name.size() && name.find('@', at + 1) == name.npos;
}

accounts::accounts(const std::string& path)
{
    if (!std::filesystem::exists(path)) std::ofstream(path) << first_account;
    std::ifstream file(path);
    if (!file)
        throw std::invalid_argument("SIGNIN_ACCOUNTS: cannot read " + path + ": " +
                                    std::strerror(errno));
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
        const auto name = canonical_name(line);
        if (name.empty() || name.starts_with('#')) continue;
        if (!can_be_account(name))
            throw std::invalid_argument("SIGNIN_ACCOUNTS: line " + std::to_string(number) + " of " +
                                        path + " is no mail address");
        known_.insert(name);
    }
}

}  // namespace signin
