// SPDX-License-Identifier: BSL-1.0

#include "weir/forms/render_token.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <span>

#include "weir/invalid.hpp"

namespace weir {
namespace {

constexpr char        layout_version = 1;
constexpr std::size_t mac_size       = 32;
constexpr std::size_t signed_size    = 1 + 8 + 16;  // version, instant, random bits

/// 57 bytes, a multiple of three: no letter of the text has bits to spare, so that a token has one
/// text only.
using token_bytes = std::array<unsigned char, signed_size + mac_size>;
static_assert(sizeof(token_bytes) / 3 * 4 == render_token::length);

constexpr std::string_view letters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string text_of(const token_bytes& bytes)
{
    std::string text;
    text.reserve(render_token::length);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::size_t three = 0;
        for (std::size_t j = 0; j < 3; ++j) three = three << 8 | bytes[i + j];
        for (const auto shift : {18, 12, 6, 0}) text += letters[three >> shift & 63];
    }
    return text;
}

std::optional<token_bytes> bytes_of_text(std::string_view text) noexcept
{
    token_bytes bytes;
    if (text.size() != render_token::length) return std::nullopt;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::size_t three = 0;
        for (const char letter : text.substr(i / 3 * 4, 4)) {
            const auto value = letters.find(letter);
            if (value == letters.npos) return std::nullopt;
            three = three << 6 | value;
        }
        bytes[i]     = static_cast<unsigned char>(three >> 16 & 255);
        bytes[i + 1] = static_cast<unsigned char>(three >> 8 & 255);
        bytes[i + 2] = static_cast<unsigned char>(three & 255);
    }
    return bytes;
}

void put_word(unsigned char* to, std::uint64_t word) noexcept
{
    for (int i = 7; i >= 0; --i) to[i] = static_cast<unsigned char>(word & 255), word >>= 8;
}

std::uint64_t word_at(const unsigned char* from) noexcept
{
    std::uint64_t word = 0;
    for (int i = 0; i < 8; ++i) word = word << 8 | from[i];
    return word;
}

using mac = std::array<unsigned char, mac_size>;

mac hmac(std::string_view key, std::string_view message)
{
    mac made;
    if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
             reinterpret_cast<const unsigned char*>(message.data()), message.size(), made.data(),
             nullptr) == nullptr)
        std::abort();
    return made;
}

/// Takes a subject apart as `feed_subject` does: lengths first, so that no two read alike.
struct spelled {
    std::string bytes;

    spelled& feed(std::string_view part) { return bytes += part, *this; }
    spelled& feed(std::uint64_t word)
    {
        unsigned char as_bytes[8];
        put_word(as_bytes, word);
        return feed(std::string_view(reinterpret_cast<const char*>(as_bytes), sizeof as_bytes));
    }
};

mac signature(std::string_view key, const token_bytes& of, const subject& bound_to)
{
    spelled message;
    message.feed(std::string_view(reinterpret_cast<const char*>(of.data()), signed_size));
    const auto part = [&](std::string_view bytes) {
        message.feed(std::uint64_t{bytes.size()}).feed(bytes);
    };
    part(bound_to.first());
    for (const auto bytes : bound_to.rest()) part(bytes);
    return hmac(key, message.bytes);
}

token_verdict judge(duration age, duration youngest, duration oldest) noexcept
{
    if (age < duration::zero()) return token_verdict::from_future;
    if (age < youngest) return token_verdict::too_young;
    return age > oldest ? token_verdict::too_old : token_verdict::valid;
}

}  // namespace

render_token::render_token(const render_token_options& options)
    : min_age_(options.min_age), max_age_(options.max_age)
{
    if (options.secret.size() < 16)
        detail::invalid("render_token: the secret has " + std::to_string(options.secret.size()) +
                        " bytes; 16 are the least, 32 random ones are better");
    if (min_age_ < duration::zero() || max_age_ < min_age_)
        detail::invalid("render_token: 0 <= min_age <= max_age does not hold");
    // A key of its own: what else is signed with the secret is no token.
    const auto own = hmac(options.secret, "weir render token 1 " + options.purpose);
    key_.assign(own.begin(), own.end());
}

std::string render_token::issue(const subject& bound_to, instant at) const
{
    token_bytes bytes;
    bytes[0] = layout_version;
    put_word(&bytes[1], static_cast<std::uint64_t>(at.time_since_epoch().count()));
    if (RAND_bytes(&bytes[9], 16) != 1) std::abort();
    std::ranges::copy(signature(key_, bytes, bound_to), bytes.begin() + signed_size);
    return text_of(bytes);
}

token_check render_token::check(std::string_view token, const subject& bound_to, instant at) const
{
    if (token.empty()) return {.verdict = token_verdict::missing};
    const auto bytes = bytes_of_text(token);
    if (!bytes) return {.verdict = token_verdict::forged};
    const auto must_be = signature(key_, *bytes, bound_to);
    if (CRYPTO_memcmp(must_be.data(), bytes->data() + signed_size, mac_size) != 0 ||
        (*bytes)[0] != layout_version)
        return {.verdict = token_verdict::forged};
    const instant rendered(duration(static_cast<std::int64_t>(word_at(&(*bytes)[1]))));
    const auto    age = saturating_sub(at, rendered);
    return {.verdict = judge(age, min_age_, max_age_),
            .age     = age,
            .id      = {word_at(&(*bytes)[9]), word_at(&(*bytes)[17])},
            .expires = saturating_add(rendered, max_age_)};
}

}  // namespace weir
