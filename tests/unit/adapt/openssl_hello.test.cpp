// SPDX-License-Identifier: BSL-1.0

#include "weir/adapt/openssl_hello.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include "catch.hpp"
#include "reference/made_hello.hpp"
#include "reference/slow_hello.hpp"
#include "reference/tls_ends.hpp"

using reference::tls_link;

namespace {

/// The message within the records of what a client sent.
std::string message_in(const std::string& stream)
{
    std::vector<char> room(200'000);
    weir::tls_records records(room);
    REQUIRE(records.feed(stream) == weir::hello_state::complete);
    return std::string(records.message());
}

/// JA4 and stable key by the slow reading of those bytes.
void check_noted(const reference::tls_end& server, const std::string& message, char transport = 't')
{
    const auto        slow = reference::slow_hello(message, transport, 200'000);
    const auto* const note = weir::hello_of(server.get());
    REQUIRE(note != nullptr);
    CHECK_FALSE(note->fault);
    CHECK(note->ja4.bytes() == slow.substr(0, 36));
    CHECK(note->stable_key.bytes() == slow.substr(2 * 37, 36));
    CHECK(weir::ja4_of(server.get()) == note->ja4);
    CHECK(weir::stable_key_of(server.get()) == note->stable_key);
}

reference::tls_context watched_server(std::size_t most = weir::hello_options{}.most_bytes)
{
    auto out = reference::server_context();
    REQUIRE(weir::watch_hellos(out.get(), most));
    return out;
}

/// A client whose hello has about so many bytes: one protocol after the other.
reference::tls_context long_client(std::size_t bytes)
{
    auto        out = reference::client_context();
    std::string protocols;
    while (protocols.size() < bytes) protocols += reference::block(std::string(200, 'x'), 1);
    REQUIRE(SSL_CTX_set_alpn_protos(out.get(),
                                    reinterpret_cast<const unsigned char*>(protocols.data()),
                                    static_cast<unsigned>(protocols.size())) == 0);
    return out;
}

struct calls {
    int hellos = 0, all = 0;
};

/// A callback as a user may have it.
void own_callback(int write_p, int version, int content_type, const void* bytes, std::size_t length,
                  SSL* ssl, void* argument)
{
    auto& counted = *static_cast<calls*>(argument);
    ++counted.all;
    counted.hellos += write_p == 0 && content_type == SSL3_RT_HANDSHAKE && length > 0 &&
                      *static_cast<const char*>(bytes) == 1;
    weir::note_hello(write_p, version, content_type, bytes, length, ssl);
}

}  // namespace

TEST_CASE("a live connection has the fingerprint of the bytes it came with, however they arrive",
          "[openssl_hello]")
{
    const auto server = watched_server();
    const auto client = reference::client_context();
    for (const std::size_t most : {1U, 37U, 100'000U}) {
        tls_link link(client, server);
        CHECK(weir::hello_of(link.server.get()) == nullptr);
        CHECK_FALSE(weir::ja4_of(link.server.get()));
        const auto said = tls_link::said_by(link.client);
        tls_link::tell(link.server, said, most);
        check_noted(link.server, message_in(said));
        CHECK(link.shake());
        check_noted(link.server, message_in(said));  // for as long as the connection lives
        CHECK(weir::hello_of(link.client.get()) == nullptr);
    }
}

TEST_CASE("a hello in records of one byte is read, half a hello and other talk are not",
          "[openssl_hello]")
{
    const auto server  = watched_server();
    const auto client  = reference::client_context();
    const auto message = message_in(tls_link::said_by(tls_link(client, server).client));

    tls_link bytes(client, server);
    tls_link::tell(bytes.server, reference::records(message, 1));
    check_noted(bytes.server, message);

    tls_link half(client, server);
    tls_link::tell(half.server, reference::records(message).substr(0, message.size() / 2));
    CHECK(weir::hello_of(half.server.get()) == nullptr);

    tls_link plain(client, server);
    tls_link::tell(plain.server, "GET / HTTP/1.1\r\n\r\n");
    CHECK(weir::hello_of(plain.server.get()) == nullptr);
}

TEST_CASE("a hello of 65 kB is read, and one over the cap shakes hands without a fingerprint",
          "[openssl_hello]")
{
    const auto client = long_client(64'700);
    const auto server = watched_server();
    tls_link   whole(client, server);
    const auto said = tls_link::said_by(whole.client);
    CHECK(message_in(said).size() > 65'000);
    tls_link::tell(whole.server, said);
    check_noted(whole.server, message_in(said));
    CHECK(whole.shake());

    const auto capped = watched_server(16'384);
    tls_link   cut(client, capped);
    CHECK(cut.shake());
    REQUIRE(weir::hello_of(cut.server.get()) != nullptr);
    CHECK(weir::hello_of(cut.server.get())->fault == weir::hello_fault::too_long);
    CHECK_FALSE(weir::ja4_of(cut.server.get()));
    CHECK_FALSE(weir::stable_key_of(cut.server.get()));
}

TEST_CASE("the hello before a HelloRetryRequest is the one that counts", "[openssl_hello]")
{
    const auto server = watched_server();
    const auto client = reference::client_context();
    REQUIRE(SSL_CTX_set1_groups_list(server.get(), "X25519") == 1);
    REQUIRE(SSL_CTX_set1_groups_list(client.get(), "P-521:X25519") == 1);
    tls_link   link(client, server);
    const auto first = tls_link::said_by(link.client);
    tls_link::tell(link.server, first);
    tls_link::tell(link.client, tls_link::said_by(link.server));
    const auto second = tls_link::said_by(link.client);
    REQUIRE(second.find('\x16') != second.npos);
    tls_link::tell(link.server, second);
    CHECK(link.shake());
    check_noted(link.server, message_in(first));
}

TEST_CASE("a callback of the user's own keeps being called and the hello is noted",
          "[openssl_hello]")
{
    const auto server = reference::server_context();
    const auto client = reference::client_context();
    calls      counted;
    SSL_CTX_set_msg_callback(server.get(), &own_callback);
    SSL_CTX_set_msg_callback_arg(server.get(), &counted);
    REQUIRE(SSL_CTX_set1_groups_list(server.get(), "X25519") == 1);
    REQUIRE(SSL_CTX_set1_groups_list(client.get(), "P-521:X25519") == 1);
    tls_link   link(client, server);
    const auto first = tls_link::said_by(link.client);
    tls_link::tell(link.server, first);
    const int early = counted.all;
    CHECK(link.shake());
    CHECK(counted.hellos == 2);  // HelloRetryRequest
    CHECK(counted.all > early);
    check_noted(link.server, message_in(first));
}

TEST_CASE("the callback is gone after the first hello", "[openssl_hello]")
{
    const auto server = watched_server();
    const auto client = reference::client_context();
    SSL_CTX_set_max_proto_version(server.get(), TLS1_2_VERSION);
    SSL_CTX_set_options(server.get(), SSL_OP_ALLOW_CLIENT_RENEGOTIATION);
    const auto notes_next_hello = [&](bool watched_again) {
        tls_link link(client, server);
        REQUIRE(link.shake());
        auto* const ssl = link.server.get();
        if (watched_again) {
            REQUIRE(weir::watch_hello(ssl));
        } else {  // without its note, a connection takes down whatever hello it is told of
            delete weir::hello_of(ssl);
            REQUIRE(SSL_set_ex_data(ssl, weir::detail::hello_index(), nullptr) == 1);
        }
        REQUIRE(SSL_renegotiate(link.client.get()) == 1);
        const auto again = tls_link::said_by(link.client);
        BIO_write(SSL_get_rbio(ssl), again.data(), static_cast<int>(again.size()));
        char nothing = 0;
        REQUIRE(SSL_read(ssl, &nothing, 1) < 0);  // only reading begins the second handshake
        REQUIRE(link.shake());
        return weir::hello_of(ssl) != nullptr;
    };
    CHECK_FALSE(notes_next_hello(false));
    CHECK(notes_next_hello(true));
}

TEST_CASE("a handshake that fails has its fingerprint all the same", "[openssl_hello]")
{
    const auto server = watched_server();
    const auto client = reference::client_context();
    SSL_CTX_set_max_proto_version(server.get(), TLS1_2_VERSION);
    SSL_CTX_set_min_proto_version(client.get(), TLS1_3_VERSION);
    tls_link   link(client, server);
    const auto said = tls_link::said_by(link.client);
    tls_link::tell(link.server, said);
    CHECK_FALSE(link.shake());
    check_noted(link.server, message_in(said));
}

TEST_CASE("one connection alone is watched, and again for its next client", "[openssl_hello]")
{
    const auto server = reference::server_context();
    const auto modern = reference::client_context();
    const auto older  = reference::client_context();
    SSL_CTX_set_max_proto_version(older.get(), TLS1_2_VERSION);

    tls_link link(modern, server);
    REQUIRE(weir::watch_hello(link.server.get()));
    const auto said = tls_link::said_by(link.client);
    tls_link::tell(link.server, said);
    check_noted(link.server, message_in(said));
    const auto before = weir::ja4_of(link.server.get());

    REQUIRE(SSL_clear(link.server.get()) == 1);
    REQUIRE(weir::watch_hello(link.server.get()));
    CHECK(weir::hello_of(link.server.get()) == nullptr);
    link.client.reset(SSL_new(older.get()));
    link.begin();
    const auto next = tls_link::said_by(link.client);
    tls_link::tell(link.server, next);
    check_noted(link.server, message_in(next));
    CHECK(weir::ja4_of(link.server.get()) != before);
}

TEST_CASE("a copy of a connection has no note of the first", "[openssl_hello]")
{
    const auto server = watched_server();
    const auto client = reference::client_context();
    tls_link   link(client, server);
    // OpenSSL copies only what has not begun, so the note is put there.
    REQUIRE(SSL_set_ex_data(link.server.get(), weir::detail::hello_index(),
                            new weir::noted_hello) == 1);
    const reference::tls_end copy(SSL_dup(link.server.get()));
    REQUIRE(copy != nullptr);
    REQUIRE(copy != link.server);
    CHECK(weir::hello_of(copy.get()) == nullptr);
    CHECK(weir::hello_of(link.server.get()) != nullptr);
}

TEST_CASE("DTLS is read as DTLS, also when its hello comes in parts", "[openssl_hello]")
{
    const auto        server    = reference::server_context(DTLS_server_method());
    const auto        client    = reference::client_context(DTLS_client_method());
    const auto        protocols = reference::block(std::string(200, 'x'), 1);
    const std::size_t head      = 13;  // of a record
    REQUIRE(weir::watch_hellos(server.get()));
    std::string found;
    for (const long mtu : {1400L, 256L}) {
        tls_link link(client, server);
        for (auto* end : {link.client.get(), link.server.get()}) {
            SSL_set_options(end, SSL_OP_NO_QUERY_MTU);
            REQUIRE(SSL_set_mtu(end, mtu) == mtu);
        }
        REQUIRE(SSL_set_alpn_protos(link.client.get(),
                                    reinterpret_cast<const unsigned char*>(protocols.data()),
                                    static_cast<unsigned>(protocols.size())) == 0);
        const auto said = tls_link::said_by(link.client);
        tls_link::tell(link.server, said);
        if (mtu == 1400) check_noted(link.server, said.substr(head), 'd');
        else
            CHECK(weir::read_client_hello(std::string_view(said).substr(head),
                                          {.transport = weir::hello_transport::dtls})
                      .fault == weir::hello_fault::fragmented);
        found += weir::ja4_of(link.server.get()).bytes();
        CHECK(link.shake());
    }
    REQUIRE(found.size() == 72);
    CHECK(found.substr(0, 36) == found.substr(36));
    CHECK(found.starts_with("dd2i"));
}

TEST_CASE("without a connection there is no fingerprint", "[openssl_hello]")
{
    CHECK(weir::hello_of(nullptr) == nullptr);
    CHECK_FALSE(weir::ja4_of(nullptr));
    CHECK_FALSE(weir::stable_key_of(nullptr));
}
