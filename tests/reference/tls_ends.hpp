// SPDX-License-Identifier: BSL-1.0
#pragma once

// The two ends of a TLS connection in memory, so that a test sees and cuts what goes between them.

#include <memory>
#include <stdexcept>
#include <string>

#include <openssl/ssl.h>
#include <openssl/x509.h>

namespace reference {

template <auto Free>
struct freed_by {
    template <class Object>
    void operator()(Object* of) const
    {
        Free(of);
    }
};
using tls_context = std::unique_ptr<SSL_CTX, freed_by<SSL_CTX_free>>;
using tls_end     = std::unique_ptr<SSL, freed_by<SSL_free>>;

inline void must(bool held, const char* what)
{
    if (!held) throw std::runtime_error(what);
}

/// A context of a server with a certificate made for it.
inline tls_context server_context(const SSL_METHOD* method = TLS_server_method())
{
    const std::unique_ptr<EVP_PKEY, freed_by<EVP_PKEY_free>> key(EVP_EC_gen("P-256"));
    const std::unique_ptr<X509, freed_by<X509_free>>         made(X509_new());
    tls_context                                              out(SSL_CTX_new(method));
    must(key && made && out, "no memory for a certificate");
    X509_gmtime_adj(X509_getm_notBefore(made.get()), -60);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), 3600);
    X509_set_pubkey(made.get(), key.get());
    must(X509_sign(made.get(), key.get(), EVP_sha256()) > 0, "no signature");
    must(SSL_CTX_use_certificate(out.get(), made.get()) == 1 &&
             SSL_CTX_use_PrivateKey(out.get(), key.get()) == 1,
         "no certificate");
    return out;
}

inline tls_context client_context(const SSL_METHOD* method = TLS_client_method())
{
    tls_context out(SSL_CTX_new(method));
    must(out != nullptr, "no memory for a context");
    return out;
}

/// Both ends and the bytes that are on their way.
class tls_link {
public:
    tls_link(const tls_context& calling, const tls_context& called)
        : client(SSL_new(calling.get())), server(SSL_new(called.get()))
    {
        begin();
    }

    /// Lets both begin a connection.
    void begin()
    {
        for (auto* end : {client.get(), server.get()}) {
            auto* const in  = BIO_new(BIO_s_mem());
            auto* const out = BIO_new(BIO_s_mem());
            BIO_set_mem_eof_return(in, -1);
            SSL_set_bio(end, in, out);
        }
        SSL_set_connect_state(client.get());
        SSL_set_accept_state(server.get());
    }

    /// What an end has to say next.
    static std::string said_by(const tls_end& end)
    {
        SSL_do_handshake(end.get());
        char*       data = nullptr;
        auto*       out  = SSL_get_wbio(end.get());
        auto        size = BIO_get_mem_data(out, &data);
        std::string said(data, static_cast<std::size_t>(size));
        (void)BIO_reset(out);
        return said;
    }

    /// Hands `bytes` to an end, so many at a time.
    static void tell(const tls_end& end, const std::string& bytes, std::size_t most = 100'000)
    {
        for (std::size_t at = 0; at < bytes.size(); at += most) {
            const auto part = bytes.substr(at, most);
            BIO_write(SSL_get_rbio(end.get()), part.data(), static_cast<int>(part.size()));
            SSL_do_handshake(end.get());
        }
    }

    /// Lets them talk until nobody has anything to say; whether both have shaken hands.
    bool shake(std::size_t most = 100'000)
    {
        for (bool talked = true; talked;) {
            const auto there = said_by(client);
            tell(server, there, most);
            const auto back = said_by(server);
            tell(client, back);
            talked = !there.empty() || !back.empty();
        }
        return SSL_is_init_finished(client.get()) == 1 && SSL_is_init_finished(server.get()) == 1;
    }

    tls_end client, server;
};

}  // namespace reference
