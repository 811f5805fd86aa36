// SPDX-License-Identifier: BSL-1.0

#include "mail/links.hpp"

#include <cstdlib>
#include <utility>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace signup {

namespace {

constexpr std::size_t id_length  = 32;
constexpr std::size_t mac_length = 16;  // bytes of it that are kept

std::string hmac(std::string_view key, std::string_view text)
{
    unsigned char bytes[EVP_MAX_MD_SIZE] = {};
    unsigned      length                 = 0;
    if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
             reinterpret_cast<const unsigned char*>(text.data()), text.size(), bytes,
             &length) == nullptr)
        std::abort();  // for want of memory: no link may be guessable
    return {reinterpret_cast<const char*>(bytes), length};
}

}  // namespace

/// A key of its own: what is signed for another purpose is no code.
links::links(std::string base, std::string_view secret)
    : base_(std::move(base)), key_(hmac(secret, "weir-signup link"))
{
}

std::string links::code(std::string_view mail_id) const
{
    std::string made(mail_id);
    for (const char c : hmac(key_, mail_id).substr(0, mac_length)) {
        const auto byte = static_cast<unsigned char>(c);
        made += "0123456789abcdef"[byte >> 4U];
        made += "0123456789abcdef"[byte & 15U];
    }
    return made;
}

std::optional<std::string> links::mail_of(std::string_view code) const
{
    if (code.size() != id_length + 2 * mac_length) return std::nullopt;
    const std::string id(code.substr(0, id_length));
    if (!same_secret(this->code(id), code)) return std::nullopt;
    return id;
}

bool same_secret(std::string_view one, std::string_view other) noexcept
{
    return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace signup
