// SPDX-License-Identifier: BSL-1.0
#pragma once

// The fingerprint of a live TLS or DTLS connection of OpenSSL 3, in any server:
//
//     weir::watch_hellos(context.native_handle());                   // once, before connections
//     const auto who = weir::ja4_of(stream.native_handle());         // in a handler
//
// OpenSSL's own functions for extensions leave out those that it does not know. What is read here
// is the message itself. Link weir::ja4 and OpenSSL; docs/tls-fingerprints.md has the servers.

#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <string_view>

#include "weir/extract/client_hello.hpp"
#include "weir/extract/ja4.hpp"

#include <openssl/ssl.h>

namespace weir {

/// What the first hello of a connection was found to be.
struct noted_hello {
    tls_fingerprint            ja4        = {};
    tls_fingerprint            stable_key = {};
    std::optional<hello_fault> fault      = {};  ///< Why there are no fingerprints.
};

/// Notes the hello of every connection made of this context from now on, by its message callback.
/// OpenSSL has one such callback and none can ask for it: whoever sets another afterwards, or had
/// set one before, calls `note_hello` from that one instead. The callback is taken away from each
/// connection with its first hello, so that it costs nothing more; client hello, servername and
/// ALPN callbacks stay free. A hello of more than `most_bytes` is not read and changes nothing
/// else.
///
/// False if OpenSSL has no memory for its part. Not while other threads use the context.
[[nodiscard]] inline bool
watch_hellos(SSL_CTX* context, std::size_t most_bytes = hello_options{}.most_bytes) noexcept;

/// As above for one connection, before its handshake. Forgets what was noted: for an SSL that
/// SSL_clear makes ready for its next client.
[[nodiscard]] inline bool watch_hello(SSL*        ssl,
                                      std::size_t most_bytes = hello_options{}.most_bytes) noexcept;

/// For a message callback of your own: hand on what it gets. All but the first hello of a
/// connection is ignored, so of the one that follows a HelloRetryRequest, too. Without memory for
/// the note there is none. One allocation for each connection, freed with it.
inline void note_hello(int write_p, int version, int content_type, const void* bytes,
                       std::size_t length, SSL* ssl,
                       std::size_t most_bytes = hello_options{}.most_bytes) noexcept;

/// What was noted, for as long as the connection lives; null before its hello and without one.
/// As thread-safe as the connection: reading needs no lock once the hello has arrived.
[[nodiscard]] inline const noted_hello* hello_of(const SSL* ssl) noexcept;

/// Its JA4 and its stable key (see `stable_key`); none without a hello, and for null.
[[nodiscard]] inline tls_fingerprint ja4_of(const SSL* ssl) noexcept;
[[nodiscard]] inline tls_fingerprint stable_key_of(const SSL* ssl) noexcept;

// ---------------------------------------------------------------------------------------------

namespace detail {

/// Where a connection keeps its note. A copy of a connection starts without: it says a hello of its
/// own.
inline int hello_index() noexcept
{
    static const int index = SSL_get_ex_new_index(
        0, nullptr, nullptr,
        [](CRYPTO_EX_DATA*, const CRYPTO_EX_DATA*, void** note, int, long, void*) {
            *note = nullptr;
            return 1;
        },
        [](void*, void* note, CRYPTO_EX_DATA*, int, long, void*) {
            delete static_cast<noted_hello*>(note);
        });
    return index;
}

inline noted_hello read_note(std::string_view message, const hello_options& options) noexcept
{
    const auto reading = read_client_hello(message, options);
    if (reading.state != hello_state::complete)
        return {.fault = reading.fault.value_or(hello_fault::malformed)};
    return {.ja4 = ja4(reading.hello), .stable_key = stable_key(reading.hello)};
}

/// The message callback that `watch_hellos` sets; `most_bytes` is the number, not an address.
inline void watch_message(int write_p, int version, int content_type, const void* bytes,
                          std::size_t length, SSL* ssl, void* most_bytes) noexcept
{
    note_hello(write_p, version, content_type, bytes, length, ssl,
               reinterpret_cast<std::uintptr_t>(most_bytes));
    // While one is set, OpenSSL calls it for every record and writes TLS 1.2 less fast.
    if (hello_of(ssl) != nullptr) SSL_set_msg_callback(ssl, nullptr);
}

inline void* as_argument(std::size_t most_bytes) noexcept
{
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(most_bytes));
}

}  // namespace detail

inline bool watch_hellos(SSL_CTX* context, std::size_t most_bytes) noexcept
{
    if (detail::hello_index() < 0) return false;
    SSL_CTX_set_msg_callback(context, &detail::watch_message);
    SSL_CTX_set_msg_callback_arg(context, detail::as_argument(most_bytes));
    return true;
}

inline bool watch_hello(SSL* ssl, std::size_t most_bytes) noexcept
{
    const int index = detail::hello_index();
    if (index < 0) return false;
    delete static_cast<noted_hello*>(SSL_get_ex_data(ssl, index));
    if (SSL_set_ex_data(ssl, index, nullptr) != 1) return false;
    SSL_set_msg_callback(ssl, &detail::watch_message);
    SSL_set_msg_callback_arg(ssl, detail::as_argument(most_bytes));
    return true;
}

inline void note_hello(int write_p, int /*version*/, int content_type, const void* bytes,
                       std::size_t length, SSL* ssl, std::size_t most_bytes) noexcept
{
    constexpr char client_hello_type = 1;
    const auto*    message           = static_cast<const char*>(bytes);
    const bool     is_hello = write_p == 0 && content_type == SSL3_RT_HANDSHAKE && length > 0 &&
                          message[0] == client_hello_type;
    const int index = detail::hello_index();
    if (!is_hello || index < 0 || hello_of(ssl) != nullptr) return;

    const hello_options options{.transport  = SSL_is_dtls(ssl) != 0 ? hello_transport::dtls
                                                                    : hello_transport::tls,
                                .most_bytes = most_bytes};
    auto* const         note =
        new (std::nothrow) noted_hello(detail::read_note({message, length}, options));
    if (note != nullptr && SSL_set_ex_data(ssl, index, note) != 1) delete note;
}

inline const noted_hello* hello_of(const SSL* ssl) noexcept
{
    const int index = detail::hello_index();
    if (ssl == nullptr || index < 0) return nullptr;
    return static_cast<const noted_hello*>(SSL_get_ex_data(ssl, index));
}

inline tls_fingerprint ja4_of(const SSL* ssl) noexcept
{
    const auto* const note = hello_of(ssl);
    return note != nullptr ? note->ja4 : tls_fingerprint();
}

inline tls_fingerprint stable_key_of(const SSL* ssl) noexcept
{
    const auto* const note = hello_of(ssl);
    return note != nullptr ? note->stable_key : tls_fingerprint();
}

}  // namespace weir
