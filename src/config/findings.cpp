// SPDX-License-Identifier: BSL-1.0

// What is told of a file, as text.

#include "weir/config/document.hpp"
#include "weir/http/refusal.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace weir::config {
namespace {

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

/// Insertions, removals, replacements and swaps of neighbours between two short words.
std::size_t distance(std::string_view a, std::string_view b)
{
    std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
    std::iota(last.begin(), last.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const auto same = [&](std::size_t x, std::size_t y) {
                return lower(a[x - 1]) == lower(b[y - 1]);
            };
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same(i, j) ? 0 : 1)});
            if (i > 1 && j > 1 && same(i, j - 1) && same(i - 1, j))
                row[j] = std::min(row[j], before[j - 2] + 1);
        }
        std::swap(before, last);
        std::swap(last, row);
    }
    return last.back();
}

}  // namespace

std::string to_string(const finding& of)
{
    std::string out = of.file;
    if (of.at.line != 0)
        out.append(":")
            .append(std::to_string(of.at.line))
            .append(":")
            .append(std::to_string(of.at.column));
    if (!of.table.empty()) out.append(": ").append(of.table);
    return out.append(": ").append(of.text);
}

std::string to_string(std::span<const finding> of)
{
    std::string out;
    for (const auto& one : of) out.append(to_string(one)).append("\n");
    return out;
}

std::string shown(std::string_view written)
{
    constexpr std::size_t most = 60;
    auto                  end  = std::min(written.size(), most);
    while (end > 0 && end < written.size() && (written[end] & 0xc0) == 0x80) --end;
    std::string out = "\"";
    for (auto rest = written.substr(0, end); !rest.empty();) {
        const auto length = weir::detail::utf8_length(rest);
        const auto odd =
            length == 0 || static_cast<unsigned char>(rest[0]) < ' ' || rest[0] == 0x7f;
        if (odd) out += '?';
        else out.append(rest.substr(0, length));
        rest.remove_prefix(std::max<std::size_t>(length, 1));
    }
    return out += end < written.size() ? "…\"" : "\"";
}

std::string_view nearest(std::string_view written, std::span<const std::string_view> known)
{
    std::string_view best;
    std::size_t      least = 3;
    for (const auto& word : known) {
        const auto longer = std::max(word.size(), written.size());
        if (longer > 64 || longer - std::min(word.size(), written.size()) > 2) continue;
        const auto apart = distance(written, word);
        if (apart < least && apart * 3 <= longer) least = apart, best = word;
    }
    return best;
}

}  // namespace weir::config
