// SPDX-License-Identifier: BSL-1.0

#include "weir/remote/device_cookie.hpp"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>

#include "weir/invalid.hpp"

namespace weir::remote {
namespace {

constexpr std::string_view version       = "1";
constexpr std::size_t      identity_size = 32;

std::string_view text_of(const hash_bytes& hash)
{
    return {reinterpret_cast<const char*>(hash.data()), hash.size()};
}

/// Each part after its length, so that no two lists of parts are one text.
void append_part(std::string& to, std::string_view part)
{
    for (unsigned shift = 0; shift < 64; shift += 8)
        to += static_cast<char>(std::uint64_t{part.size()} >> shift & 0xff);
    to += part;
}

bool is_identity(std::string_view text)
{
    return text.size() == identity_size && std::ranges::all_of(text, [](char c) {
               return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
           });
}

std::string new_identity()
{
    std::array<unsigned char, identity_size / 2> bytes{};
    if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) std::abort();
    hash_bytes wide{};
    std::ranges::copy(bytes, wide.begin());
    return hex(wide).substr(0, identity_size);
}

std::int64_t second_of(instant at)
{
    return std::chrono::floor<std::chrono::seconds>(at).time_since_epoch().count();
}

/// What comes before the next dot, which goes with it.
std::string_view cut(std::string_view& rest)
{
    const auto end  = rest.find('.');
    const auto part = rest.substr(0, end);
    rest            = end == rest.npos ? std::string_view() : rest.substr(end + 1);
    return part;
}

}  // namespace

device_cookie::device_cookie(const device_cookie_options& options)
    : key_(text_of(hash(options.secret, "weir: purpose: device cookie"))),
      lifetime_(options.lifetime)
{
    if (options.secret.size() < 16)
        detail::invalid("device_cookie: the secret has " + std::to_string(options.secret.size()) +
                        " bytes; at least 16 are allowed");
    if (lifetime_ < std::chrono::seconds(1))
        detail::invalid("device_cookie: lifetime must be positive");
}

std::string device_cookie::signature(std::string_view user, std::string_view device,
                                     std::string_view until) const
{
    std::string text;
    for (const auto part : {version, user, device, until}) append_part(text, part);
    return hex(hash(key_, text));
}

std::string device_cookie::issue(std::string_view user, std::string_view device, instant at) const
{
    const auto identity = is_identity(device) ? std::string(device) : new_identity();
    const auto until    = std::to_string(second_of(saturating_add(at, lifetime_)));
    return std::string(version) + "." + until + "." + identity + "." +
           signature(user, identity, until);
}

std::string device_cookie::known(std::string_view user, std::string_view value, instant at) const
{
    const auto layout    = cut(value);
    const auto until     = cut(value);
    const auto identity  = cut(value);
    const auto signature = this->signature(user, identity, until);
    if (layout != version || !is_identity(identity) || value.size() != signature.size() ||
        CRYPTO_memcmp(value.data(), signature.data(), signature.size()) != 0)
        return {};
    std::int64_t end  = 0;
    const auto   read = std::from_chars(until.data(), until.data() + until.size(), end);
    if (read.ec != std::errc() || read.ptr != until.data() + until.size()) return {};
    return second_of(at) < end ? std::string(identity) : std::string();
}

}  // namespace weir::remote
