// SPDX-License-Identifier: BSL-1.0

#include "patterns.hpp"

#include "weir/invalid.hpp"
#include "weir/extract/client_ip.hpp"

#include <utility>

namespace weir::http {
namespace {

RE2::Options bytes_quietly()
{
    RE2::Options out;
    out.set_encoding(RE2::Options::EncodingLatin1);
    out.set_log_errors(false);
    return out;
}

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

std::string pattern_fault(std::string_view pattern)
{
    const RE2 read(piece(pattern), bytes_quietly());
    if (read.ok()) return {};
    const auto& at = read.error_arg();
    return at.empty() ? read.error() : read.error() + " at " + detail::shown(at);
}

patterns::patterns(std::string_view option, const std::vector<std::string>& list)
    : all_(bytes_quietly(), RE2::UNANCHORED)
{
    for (std::size_t i = 0; i < list.size(); ++i) {
        if (const auto fault = pattern_fault(list[i]); !fault.empty())
            detail::invalid(std::string(option) + "[" + std::to_string(i) + "] is " +
                            detail::shown(list[i]) + ", which is no pattern: " + fault);
        all_.Add(piece(list[i]), nullptr);
        each_.push_back(std::make_unique<RE2>(piece(list[i]), bytes_quietly()));
    }
    if (!list.empty() && !all_.Compile())
        detail::invalid(std::string(option) + " is too much for one set of patterns");
}

bool patterns::match(std::string_view text) const
{
    if (each_.empty()) return false;
    RE2::Set::ErrorInfo error{RE2::Set::kNoError};
    if (all_.Match(piece(text), nullptr, &error)) return true;
    if (error.kind == RE2::Set::kNoError) return false;
    for (const auto& one : each_)
        if (RE2::PartialMatch(piece(text), *one)) return true;
    return false;
}

std::optional<answer> refused(const visit& who, const would_be_refusal& why, bool dry_run,
                              shadow_log* log, instant at)
{
    if (!dry_run)
        return answer{.status = why.status,
                      .fields = {{"Content-Type", "text/plain; charset=utf-8"},
                                 {"Cache-Control", "no-store"}},
                      .body   = std::string(why.reason)};
    if (log != nullptr) log->would_refuse(who, why, at);
    return std::nullopt;
}

}  // namespace weir::http
