// SPDX-License-Identifier: BSL-1.0

// A TLS server that tells each client its own fingerprint, and prints it:
//
//     weir-ja4-clients --cert cert.pem --key key.pem --port 8443
//     curl -k https://127.0.0.1:8443/
//
// prints `PORT JA4 STABLE_KEY` for each request, PORT being the client's. What is Weir's in it are
// the three lines marked so.

#include <httplib.h>

#include "weir/adapt/openssl_hello.hpp"

#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>

namespace {

constexpr const char* usage =
    "usage: weir-ja4-clients --cert FILE --key FILE [--port 0] [--most-bytes 65536]\n";

struct settings {
    std::string cert = {}, key = {};
    int         port       = 0;  ///< 0: any that is free.
    int         most_bytes = 65'536;
};

bool number(std::string_view text, int most, int& out)
{
    const auto end  = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, out);
    return !text.empty() && read.ptr == end && read.ec == std::errc{} && out >= 0 && out <= most;
}

bool read(int argc, char** argv, settings& out)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string_view option = argv[i], value = argv[i + 1];
        if (option == "--cert") out.cert = value;
        else if (option == "--key") out.key = value;
        else if (option == "--port" && number(value, 65'535, out.port)) continue;
        else if (option == "--most-bytes" && number(value, 131'396, out.most_bytes)) continue;
        else return false;
    }
    return argc % 2 == 1 && !out.cert.empty() && !out.key.empty();
}

/// The port of the other end: httplib knows it by request only.
std::string line_of(const httplib::Request& request)
{
    const auto ja4    = weir::ja4_of(request.ssl);         // Weir
    const auto stable = weir::stable_key_of(request.ssl);  // Weir
    const auto shown  = [](const weir::tls_fingerprint& one) {
        return one ? std::string(one.bytes()) : std::string("none");
    };
    return std::to_string(request.remote_port) + ' ' + shown(ja4) + ' ' + shown(stable) + '\n';
}

int serve(const settings& chosen)
{
    httplib::SSLServer server(chosen.cert.c_str(), chosen.key.c_str());
    if (!server.is_valid() ||
        !weir::watch_hellos(server.ssl_context(),
                            static_cast<std::size_t>(chosen.most_bytes))) {  // Weir
        std::fprintf(stderr, "weir-ja4-clients: the certificate or its key cannot be used\n");
        return 2;
    }
    server.set_keep_alive_max_count(1);
    server.Get("/.*", [](const httplib::Request& request, httplib::Response& response) {
        const auto line = line_of(request);
        std::fputs(line.c_str(), stdout);
        std::fflush(stdout);
        response.set_content(line, "text/plain");
    });
    const int port = chosen.port != 0 && server.bind_to_port("127.0.0.1", chosen.port) ? chosen.port
                     : chosen.port == 0 ? server.bind_to_any_port("127.0.0.1")
                                        : -1;
    if (port < 0) {
        std::fprintf(stderr, "weir-ja4-clients: port %d cannot be had\n", chosen.port);
        return 2;
    }
    std::printf("listening on https://127.0.0.1:%d\n", port);
    std::fflush(stdout);
    return server.listen_after_bind() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv)
{
    settings chosen;
    if (argc == 2 && std::string_view(argv[1]) == "--help") return std::fputs(usage, stdout) < 0;
    if (read(argc, argv, chosen)) return serve(chosen);
    std::fputs(usage, stderr);
    return 2;
}
