// SPDX-License-Identifier: BSL-1.0
#pragma once

// A refusal: a decision in HTTP's terms, for whatever server there is. Status, header fields and
// body; the framing (Content-Length, keep-alive) is the server's own business.
// 429: RFC 6585 section 4. Retry-After: RFC 9110 section 10.2.3. no-store: RFC 9111, 5.2.2.5.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weir/decision.hpp"
#include "weir/invalid.hpp"

namespace weir {

/// A status that says no: 400 to 599. Throws std::invalid_argument for any other, where the
/// options are written and not while a request waits.
class error_status {
public:
    constexpr error_status(int code);
    [[nodiscard]] constexpr int code() const noexcept { return code_; }

private:
    int code_;
};

/// What the body looks like. `<wait>` is ` Try again in N seconds.`, left out when no wait is told.
enum class refusal_body : std::uint8_t {
    text,      ///< text/plain: `Too many requests.<wait>` and a line feed.
    envelope,  ///< JSON: an `error` object with `code`, `message` and four `details`, see below.
    minimal,   ///< JSON: `{"error":"too_many"}`; when the store is away `{"error":"unavailable"}`.
    problem,   ///< application/problem+json, RFC 9457: see `refusal`.
};

struct refusal_options {
    refusal_body body        = refusal_body::text;
    error_status status      = 429;
    error_status unavailable = 503;   ///< Instead of `status` when basis is store_unavailable.
    bool         tell_wait   = true;  ///< Without: no Retry-After, and no wait in the body.

    /// Said as it is instead of the default message, with nothing added; `minimal` has none.
    /// Borrowed until the refusal is made.
    std::string_view message = {};

    /// For `problem`: the names of all limiters that refused (joint_decision::refused_by). Empty:
    /// the decision's. Borrowed until the refusal is made.
    std::span<const std::string_view> violated = {};
};

/// One header field of a refusal.
struct refusal_header {
    std::string_view name  = {};  ///< Static storage.
    std::string      value = {};
};

/// The response to a refused request. A value: it keeps nothing of the decision. O(length of the
/// name and the message); throws nothing but std::bad_alloc.
///
/// The envelope's details are `scope` (the limiter's name), `limit`, `window_seconds` (rounded up;
/// null for a limit without a window) and `retry_after_seconds` (the number in Retry-After; null
/// when there is no such header). The code is `rate_limit_exceeded`, or `storage_unavailable`.
///
/// The problem has `type`, `title`, `status`, `detail` (the message) and `violated-policies` (the
/// limiters' names). Its type is that of draft-ietf-httpapi-ratelimit-headers-11, section 5:
/// `quota-exceeded`, or `temporary-reduced-capacity` where the status is 503.
class refusal {
public:
    explicit refusal(const decision& refused, const refusal_options& options = {});

    [[nodiscard]] int status() const noexcept { return status_; }

    /// Content-Type, Cache-Control, and Retry-After when a wait is told.
    [[nodiscard]] std::span<const refusal_header> headers() const noexcept;
    [[nodiscard]] std::string_view content_type() const noexcept { return headers_[0].value; }

    [[nodiscard]] const std::string& body() const noexcept { return body_; }

    /// What goes on the wire: a HEAD is answered with the same headers and no body (RFC 9110
    /// section 9.3.2).
    [[nodiscard]] std::string_view body_for(std::string_view method) const noexcept;

private:
    int                           status_;
    std::size_t                   header_count_ = 2;
    std::array<refusal_header, 3> headers_;
    std::string                   body_;
};

/// The wait as Retry-After says it: whole seconds, rounded up, at least 1. None when no wait is
/// known to help.
[[nodiscard]] constexpr std::optional<std::int64_t> retry_after_seconds(
    const decision& refused) noexcept;

/// Appends `bytes` to `json` as a JSON string, quotes included. Any bytes: one that is not part of
/// well-formed UTF-8 becomes U+FFFD, control characters are escaped (RFC 8259 section 7).
inline void append_json_string(std::string& json, std::string_view bytes);

// ---------------------------------------------------------------------------------------------

constexpr error_status::error_status(int code) : code_(code)
{
    if (code >= 400 && code <= 599) return;
    detail::invalid("a refusal's status is 400 to 599, not " + std::to_string(code));
}

constexpr std::optional<std::int64_t> retry_after_seconds(const decision& refused) noexcept
{
    if (!refused.retry_after) return std::nullopt;
    const auto whole = std::chrono::ceil<std::chrono::seconds>(*refused.retry_after).count();
    return std::max<std::int64_t>(whole, 1);
}

namespace detail {

/// How many bytes at the start of `bytes` (not empty) are one well-formed UTF-8 character: 1 to 4,
/// or 0. Table 3-7 of the Unicode standard: no overlong form, no surrogate, nothing over U+10FFFF.
constexpr std::size_t utf8_length(std::string_view bytes) noexcept
{
    const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
    const auto continues = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
        return i < bytes.size() && at(i) >= low && at(i) <= high;
    };
    const unsigned lead = at(0);
    if (lead < 0x80) return 1;
    if (lead >= 0xc2 && lead <= 0xdf) return continues(1) ? 2 : 0;
    if (lead >= 0xe0 && lead <= 0xef) {
        const unsigned low = lead == 0xe0 ? 0xa0 : 0x80, high = lead == 0xed ? 0x9f : 0xbf;
        return continues(1, low, high) && continues(2) ? 3 : 0;
    }
    if (lead >= 0xf0 && lead <= 0xf4) {
        const unsigned low = lead == 0xf0 ? 0x90 : 0x80, high = lead == 0xf4 ? 0x8f : 0xbf;
        return continues(1, low, high) && continues(2) && continues(3) ? 4 : 0;
    }
    return 0;
}

inline void append_json_character(std::string& json, std::string_view character)
{
    constexpr std::string_view hex = "0123456789abcdef";
    const unsigned byte = static_cast<unsigned char>(character.front());
    if (byte == '"' || byte == '\\') json.append(1, '\\').append(character);
    else if (byte >= 0x20 && byte != 0x7f) json.append(character);
    else json.append("\\u00").append(1, hex[byte >> 4U]).append(1, hex[byte & 0xfU]);
}

/// The message of a refusal: the operator's, or `sentence` and, if there is one, the wait.
inline std::string refusal_message(const refusal_options& options, std::string_view sentence,
                                   std::optional<std::int64_t> wait)
{
    if (!options.message.empty()) return std::string(options.message);
    auto message = std::string(sentence);
    // "1 seconds" too: one wording for every number, so that it can be searched for.
    if (wait) message.append(" Try again in ").append(std::to_string(*wait)).append(" seconds.");
    return message;
}

inline std::string text_body(bool unavailable, const refusal_options& options,
                             std::optional<std::int64_t> wait)
{
    const auto sentence = unavailable ? "Temporarily unavailable." : "Too many requests.";
    auto       text     = refusal_message(options, sentence, wait);
    if (options.message.empty()) text += '\n';
    return text;
}

inline std::string envelope_body(const decision& refused, bool unavailable,
                                 const refusal_options& options, std::optional<std::int64_t> wait)
{
    const auto window = std::chrono::ceil<std::chrono::seconds>(refused.window).count();
    const auto or_null = [](bool known, std::int64_t number) {
        return known ? std::to_string(number) : std::string("null");
    };
    std::string json = R"({"error":{"code":)";
    append_json_string(json, unavailable ? "storage_unavailable" : "rate_limit_exceeded");
    json += R"(,"message":)";
    append_json_string(json, refusal_message(options,
                                             unavailable ? "Temporarily unavailable."
                                                         : "Too many submission attempts.",
                                             wait));
    json += R"(,"details":{"scope":)";
    append_json_string(json, refused.limiter);
    json.append(R"(,"limit":)").append(std::to_string(refused.limit));
    json.append(R"(,"window_seconds":)").append(or_null(window > 0, window));
    json.append(R"(,"retry_after_seconds":)").append(or_null(wait.has_value(), wait.value_or(0)));
    return json += "}}}";
}

inline std::string problem_body(const decision& refused, bool unavailable, int status,
                                const refusal_options& options, std::optional<std::int64_t> wait)
{
    const bool reduced = status == 503;
    std::string json = R"({"type":"https://iana.org/assignments/http-problem-types#)";
    json += reduced ? "temporary-reduced-capacity" : "quota-exceeded";
    json += R"(","title":")";
    json += reduced ? "The server's capacity is reduced for a while" : "The quota is used up";
    json.append(R"(","status":)").append(std::to_string(status)).append(R"(,"detail":)");
    append_json_string(json, refusal_message(options,
                                             unavailable ? "Temporarily unavailable."
                                                         : "Too many requests.",
                                             wait));
    json += R"(,"violated-policies":[)";
    const auto all = options.violated.empty() ? std::span(&refused.limiter, 1) : options.violated;
    for (const auto& name : all) {
        if (&name != &all.front()) json += ',';
        append_json_string(json, name);
    }
    return json += "]}";
}

inline std::string_view media_type(refusal_body body) noexcept
{
    switch (body) {
        case refusal_body::text: return "text/plain; charset=utf-8";
        case refusal_body::problem: return "application/problem+json";
        case refusal_body::envelope:
        case refusal_body::minimal: break;
    }
    return "application/json";
}

inline std::string minimal_body(bool unavailable)
{
    return unavailable ? R"({"error":"unavailable"})" : R"({"error":"too_many"})";
}

}  // namespace detail

inline void append_json_string(std::string& json, std::string_view bytes)
{
    json += '"';
    while (!bytes.empty()) {
        const auto length = detail::utf8_length(bytes);
        if (length == 0) json += "\xef\xbf\xbd";
        else detail::append_json_character(json, bytes.substr(0, length));
        bytes.remove_prefix(std::max<std::size_t>(length, 1));
    }
    json += '"';
}

inline refusal::refusal(const decision& refused, const refusal_options& options)
    : status_(refused.basis == basis::store_unavailable ? options.unavailable.code()
                                                        : options.status.code())
{
    const bool unavailable = refused.basis == basis::store_unavailable;
    const auto wait        = options.tell_wait ? retry_after_seconds(refused) : std::nullopt;

    headers_[0] = {"Content-Type", std::string(detail::media_type(options.body))};
    headers_[1] = {"Cache-Control", "no-store"};
    if (wait) headers_[header_count_++] = {"Retry-After", std::to_string(*wait)};

    switch (options.body) {
        case refusal_body::text: body_ = detail::text_body(unavailable, options, wait); break;
        case refusal_body::minimal: body_ = detail::minimal_body(unavailable); break;
        case refusal_body::envelope:
            body_ = detail::envelope_body(refused, unavailable, options, wait);
            break;
        case refusal_body::problem:
            body_ = detail::problem_body(refused, unavailable, status_, options, wait);
            break;
    }
}

inline std::span<const refusal_header> refusal::headers() const noexcept
{
    return {headers_.data(), header_count_};
}

inline std::string_view refusal::body_for(std::string_view method) const noexcept
{
    return method == "HEAD" ? std::string_view() : std::string_view(body_);
}

}  // namespace weir
