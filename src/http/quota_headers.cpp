// SPDX-License-Identifier: BSL-1.0

#include "weir/http/quota_headers.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

namespace weir::http {

namespace {

std::string seconds_of(duration length)
{
    return std::to_string(std::chrono::ceil<std::chrono::seconds>(length).count());
}

/// A string of RFC 9651 section 3.3.3: printable ASCII, with `"` and `\` escaped. What it cannot
/// hold is a question mark.
std::string quoted(std::string_view text)
{
    std::string out = "\"";
    for (const auto c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c >= 0x20 && c < 0x7f ? c : '?';
    }
    return out += '"';
}

/// The largest integer of RFC 9651 section 3.3.1.
std::string integer(std::uint64_t number)
{
    constexpr std::uint64_t most = 999'999'999'999'999;
    return std::to_string(std::min(number, most));
}

void add_x_ratelimit(std::vector<refusal_header>& to, const budget& of)
{
    to.push_back({"X-RateLimit-Limit", std::to_string(of.limit)});
    to.push_back({"X-RateLimit-Remaining", std::to_string(of.left)});
    if (of.reset) to.push_back({"X-RateLimit-Reset", seconds_of(*of.reset)});
}

void add_draft_11(std::vector<refusal_header>& to, const budget& of)
{
    const auto name   = quoted(of.name ? std::string_view(*of.name) : std::string_view("default"));
    auto       policy = name + ";q=" + integer(of.quota);
    if (of.window > duration::zero()) policy += ";w=" + seconds_of(of.window);
    else policy += ";qu=\"concurrent-requests\"";
    auto state = name + ";r=" + integer(of.left);
    if (of.reset) state += ";t=" + seconds_of(*of.reset);
    to.push_back({"RateLimit-Policy", std::move(policy)});
    to.push_back({"RateLimit", std::move(state)});
}

}  // namespace

void quota_note::admitted(const budget& one)
{
    if (settled_ || (told_ && told_->left <= one.left)) return;
    told_ = one;
}

void quota_note::refused(std::optional<budget> one) noexcept
{
    told_    = std::move(one);
    settled_ = true;
}

std::vector<refusal_header> quota_note::fields() const
{
    std::vector<refusal_header> all;
    if (!told_) return all;
    all.reserve(5);
    if (told_->form != quota_form::draft_11) add_x_ratelimit(all, *told_);
    if (told_->form != quota_form::x_ratelimit) add_draft_11(all, *told_);
    return all;
}

}  // namespace weir::http
