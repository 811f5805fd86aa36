// SPDX-License-Identifier: BSL-1.0
#pragma once

// The first message of a TLS client, from its bytes: RFC 8446 section 4.1.2, RFC 5246 section
// 7.4.1.2; for DTLS RFC 6347 section 4.2. Strict where lengths are concerned, and no more than
// that: a hello is read to tell clients apart, not to shake hands with them.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weir {

/// What carries the handshake.
enum class hello_transport : std::uint8_t { tls, quic, dtls };

enum class hello_state : std::uint8_t {
    need_more,  ///< So far it is the beginning of a hello.
    no_hello,   ///< It is none, whatever follows.
    complete,
};

/// Why there is no hello.
enum class hello_fault : std::uint8_t {
    not_tls,           ///< No record of a TLS handshake.
    bad_record,        ///< A record of no bytes, or of more than 16,384 (RFC 8446 section 5.1).
    not_client_hello,  ///< Another message of the handshake, or of none.
    too_long,          ///< More bytes than are read.
    fragmented,        ///< DTLS: a part of a message. Put it together first.
    malformed,         ///< Its lengths do not fit into each other.
};

/// The fault's name, for logs.
[[nodiscard]] constexpr std::string_view name(hello_fault why) noexcept;

/// Numbers of 16 bits as they were sent, borrowed.
class code_list {
public:
    constexpr code_list() noexcept = default;

    /// `bytes` has an even number of them.
    constexpr explicit code_list(std::string_view bytes) noexcept : bytes_(bytes) {}

    [[nodiscard]] constexpr std::size_t   size() const noexcept { return bytes_.size() / 2; }
    [[nodiscard]] constexpr std::uint16_t operator[](std::size_t at) const noexcept;

private:
    std::string_view bytes_;
};

/// What a client offers. Borrows the bytes it was read from. Of an extension that is there twice,
/// which RFC 8446 forbids, the first counts.
struct client_hello {
    hello_transport  transport      = hello_transport::tls;
    std::uint16_t    legacy_version = 0;
    code_list        ciphers        = {};
    std::string_view extensions     = {};  ///< Type, length and data of each, as sent.

    bool                            has_server_name      = false;  ///< Even if it names nobody.
    std::optional<code_list>        supported_versions   = {};
    std::optional<code_list>        signature_algorithms = {};  ///< Of extension 13.
    std::optional<std::string_view> first_protocol       = {};  ///< ALPN; empty as it may be sent.

    /// Calls `visit` with the type of every extension, in the order of the wire.
    template <class Visitor>
    constexpr void for_each_extension(Visitor&& visit) const;
};

struct hello_options {
    hello_transport transport = hello_transport::tls;

    /// The longest message that is read, its header included. Clients send about 2,000 bytes;
    /// OpenSSL takes up to 131,396.
    std::size_t most_bytes = 65'536;
};

struct hello_reading {
    hello_state state = hello_state::need_more;

    /// Bytes of the message: while more is needed, as far as is known; once complete, all.
    std::size_t                bytes = 0;
    std::optional<hello_fault> fault = {};  ///< If there is no hello.
    client_hello               hello = {};  ///< If complete.
};

/// Reads a hello off the beginning of handshake bytes: of TLS what its records carry (see
/// tls_records.hpp), of QUIC what its CRYPTO frames carry, of DTLS a message with its header of 12
/// bytes. `stream` is all that has arrived so far; while more is needed, call again with more. What
/// follows the message is not looked at.
///
/// O(1) until the message is whole, then linear in its bytes; keeps nothing, allocates nothing.
[[nodiscard]] constexpr hello_reading read_client_hello(std::string_view     stream,
                                                        const hello_options& options = {}) noexcept;

// ---------------------------------------------------------------------------------------------

constexpr std::string_view name(hello_fault why) noexcept
{
    switch (why) {
    case hello_fault::not_tls:
        return "not_tls";
    case hello_fault::bad_record:
        return "bad_record";
    case hello_fault::not_client_hello:
        return "not_client_hello";
    case hello_fault::too_long:
        return "too_long";
    case hello_fault::fragmented:
        return "fragmented";
    case hello_fault::malformed:
        return "malformed";
    }
    return "unnamed";
}

constexpr std::uint16_t code_list::operator[](std::size_t at) const noexcept
{
    const auto high = static_cast<unsigned char>(bytes_[2 * at]);
    const auto low  = static_cast<unsigned char>(bytes_[2 * at + 1]);
    return static_cast<std::uint16_t>(high << 8 | low);
}

namespace detail {

/// Takes numbers and blocks off the beginning of some bytes. Once something was missing, nothing
/// more is found.
class hello_cursor {
public:
    constexpr explicit hello_cursor(std::string_view bytes) noexcept : rest_(bytes) {}

    constexpr std::string_view take(std::size_t count) noexcept
    {
        if (count > rest_.size()) {
            broken_ = true;
            rest_   = {};
            return {};
        }
        const std::string_view taken(rest_.data(), count);
        rest_.remove_prefix(count);
        return taken;
    }
    constexpr std::size_t number(std::size_t width) noexcept
    {
        std::size_t value = 0;
        for (const char byte : take(width)) value = value << 8 | static_cast<unsigned char>(byte);
        return value;
    }
    constexpr std::uint16_t code() noexcept
    {
        const auto bytes = take(2);
        return bytes.empty() ? std::uint16_t{0} : code_list(bytes)[0];
    }

    /// What a length of `width` bytes says.
    constexpr std::string_view block(std::size_t width) noexcept
    {
        return take(width == 2 ? code() : number(width));
    }

    [[nodiscard]] constexpr bool broken() const noexcept { return broken_; }
    [[nodiscard]] constexpr bool more() const noexcept { return !rest_.empty(); }
    [[nodiscard]] constexpr bool used_up() const noexcept { return !broken_ && rest_.empty(); }

private:
    std::string_view rest_;
    bool             broken_ = false;
};

/// An extension that is one list of numbers behind a length of `width` bytes.
constexpr std::optional<code_list> read_codes(std::string_view data, std::size_t width) noexcept
{
    hello_cursor from(data);
    const auto   list = from.block(width);
    if (!from.used_up() || list.size() % 2 != 0) return std::nullopt;
    return code_list(list);
}

/// The first of the names of ALPN (RFC 7301 section 3.1); empty if there are none.
constexpr std::optional<std::string_view> read_protocols(std::string_view data) noexcept
{
    hello_cursor from(data);
    hello_cursor names(from.block(2));
    const auto   first = names.more() ? names.block(1) : std::string_view();
    while (names.more()) names.block(1);
    if (!from.used_up() || !names.used_up()) return std::nullopt;
    return first;
}

/// Takes down what `type` says; false if its lengths do not fit.
constexpr bool read_extension(client_hello& out, std::uint16_t type, std::string_view data) noexcept
{
    constexpr std::uint16_t server_name = 0, signatures = 13, protocols = 16, versions = 43;
    if (type == server_name) out.has_server_name = true;
    if (type == versions) {
        const auto found = read_codes(data, 1);
        if (!out.supported_versions) out.supported_versions = found;
        return found.has_value();
    }
    if (type == signatures) {
        const auto found = read_codes(data, 2);
        if (!out.signature_algorithms) out.signature_algorithms = found;
        return found.has_value();
    }
    if (type == protocols) {
        const auto found = read_protocols(data);
        if (!out.first_protocol) out.first_protocol = found;
        return found.has_value();
    }
    return true;
}

constexpr bool read_extensions(client_hello& out) noexcept
{
    hello_cursor from(out.extensions);
    while (from.more()) {
        const auto type = from.code();
        const auto data = from.block(2);
        if (from.broken() || !read_extension(out, type, data)) return false;
    }
    return from.used_up();
}

constexpr std::optional<client_hello> read_hello_body(std::string_view body,
                                                      hello_transport  transport) noexcept
{
    constexpr std::size_t random = 32, most_session_id = 32;
    client_hello          out{.transport = transport};
    hello_cursor          from(body);
    out.legacy_version = from.code();
    from.take(random);
    const auto session_id = from.block(1);
    if (transport == hello_transport::dtls) from.block(1);  // the cookie
    const auto ciphers = from.block(2);
    from.block(1);  // compression methods
    if (from.more()) out.extensions = from.block(2);
    if (!from.used_up() || session_id.size() > most_session_id || ciphers.size() % 2 != 0)
        return std::nullopt;
    out.ciphers = code_list(ciphers);
    if (!read_extensions(out)) return std::nullopt;
    return out;
}

constexpr hello_reading no_hello(hello_fault why) noexcept
{
    return {.state = hello_state::no_hello, .fault = why};
}

}  // namespace detail

template <class Visitor>
constexpr void client_hello::for_each_extension(Visitor&& visit) const
{
    for (detail::hello_cursor from(extensions); from.more(); from.block(2)) visit(from.code());
}

constexpr hello_reading read_client_hello(std::string_view     stream,
                                          const hello_options& options) noexcept
{
    constexpr std::size_t kind = 1;
    const bool            dtls = options.transport == hello_transport::dtls;
    const std::size_t     head = dtls ? 12 : 4;

    detail::hello_cursor from(stream);
    if (!stream.empty() && from.number(1) != kind)
        return detail::no_hello(hello_fault::not_client_hello);
    if (stream.size() < 4) return {.bytes = head};
    const auto length = from.number(3);
    if (head + length > options.most_bytes) return detail::no_hello(hello_fault::too_long);
    if (dtls) {
        from.take(2);  // the number of the message
        const auto offset = from.number(3), part = from.number(3);
        if (from.broken()) return {.bytes = head + length};
        if (offset != 0 || part != length) return detail::no_hello(hello_fault::fragmented);
    }
    const auto body = from.take(length);
    if (from.broken()) return {.bytes = head + length};
    const auto hello = detail::read_hello_body(body, options.transport);
    if (!hello) return detail::no_hello(hello_fault::malformed);
    return {.state = hello_state::complete, .bytes = head + length, .hello = *hello};
}

}  // namespace weir
