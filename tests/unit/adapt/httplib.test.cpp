// SPDX-License-Identifier: BSL-1.0

#include "weir/adapt/httplib.hpp"

#include "catch.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

namespace {

constexpr weir::decision refused{.verdict     = weir::verdict::refused,
                                 .limiter     = "ip",
                                 .limit       = 60,
                                 .window      = 60s,
                                 .retry_after = 30s};
constexpr std::string_view refusal_text = "Too many requests. Try again in 30 seconds.\n";

/// A real httplib server on a port of its own. What is asked of it is in `served`.
class server {
public:
    using handler = std::function<bool(const httplib::Request&, httplib::Response&)>;

    /// `refuses` fills the response and says true, or lets the request through.
    explicit server(handler refuses) : refuses_(std::move(refuses))
    {
        native.set_keep_alive_timeout(1);
        native.set_pre_routing_handler([this](const auto& request, auto& response) {
            note(request.method + " " + request.target);
            return refuses_(request, response) ? httplib::Server::HandlerResponse::Handled
                                               : httplib::Server::HandlerResponse::Unhandled;
        });
        native.Get(".*", [](const auto&, auto& response) {
            response.set_content("hello", "text/plain");
        });
        port_ = native.bind_to_any_port("127.0.0.1");
        listening_ = std::thread([this] { native.listen_after_bind(); });
    }
    ~server()
    {
        while (!native.is_running()) std::this_thread::yield();
        native.stop();
        listening_.join();
    }

    [[nodiscard]] std::uint16_t port() const { return static_cast<std::uint16_t>(port_); }
    [[nodiscard]] std::vector<std::string> served()
    {
        const std::lock_guard lock(mutex_);
        return served_;
    }

    httplib::Server native;

private:
    void note(std::string what)
    {
        const std::lock_guard lock(mutex_);
        served_.push_back(std::move(what));
    }

    handler                  refuses_;
    int                      port_ = 0;
    std::thread              listening_;
    std::mutex               mutex_;
    std::vector<std::string> served_;
};

/// A server that refuses everything.
server refusing()
{
    return server([](const auto& request, auto& response) {
        weir::refuse(request, response, refused);
        return true;
    });
}

struct response {
    int         status = 0;
    std::string head   = {};
    std::string body   = {};

    [[nodiscard]] std::vector<std::string> all(std::string_view name) const
    {
        std::vector<std::string> values;
        std::string_view rest = head;
        while (!rest.empty()) {
            const auto line  = rest.substr(0, rest.find("\r\n"));
            const auto colon = std::min(line.find(": "), line.size() - 2);
            rest.remove_prefix(line.size() + 2);
            if (weir::same_header_name(line.substr(0, colon), name))
                values.emplace_back(line.substr(colon + 2));
        }
        return values;
    }
    [[nodiscard]] std::string one(std::string_view name) const
    {
        const auto values = all(name);
        REQUIRE(values.size() == 1);
        return values.front();
    }
};

/// A client that sees every byte. It gives up after ten seconds without one.
class connection {
public:
    explicit connection(const server& to) : socket_(::socket(AF_INET, SOCK_STREAM, 0))
    {
        const timeval limit{.tv_sec = 10, .tv_usec = 0};
        ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        sockaddr_in at{};
        at.sin_family      = AF_INET;
        at.sin_port        = htons(to.port());
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        REQUIRE(::connect(socket_, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
    }
    ~connection() { ::close(socket_); }
    connection(const connection&)            = delete;
    connection& operator=(const connection&) = delete;

    /// False when the server has closed the connection.
    bool send(std::string_view bytes)
    {
        return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
               static_cast<ssize_t>(bytes.size());
    }

    /// The next response; `bodiless` as one to a HEAD is.
    response receive(bool bodiless = false)
    {
        while (buffer_.find("\r\n\r\n") == std::string::npos) REQUIRE(read_some());
        const auto end = buffer_.find("\r\n\r\n") + 2;
        response   got{.head = buffer_.substr(0, end)};
        buffer_.erase(0, end + 2);
        got.status = std::atoi(got.head.c_str() + std::strlen("HTTP/1.1 "));
        if (bodiless || got.status == 100) return got;
        const auto size = std::stoul(got.one("Content-Length"));
        while (buffer_.size() < size) REQUIRE(read_some());
        got.body = buffer_.substr(0, size);
        buffer_.erase(0, size);
        return got;
    }

    /// Whether the server closes the connection without another byte.
    bool is_closed() { return buffer_.empty() && !read_some(); }

private:
    bool read_some()
    {
        char       bytes[4096];
        const auto count = ::recv(socket_, bytes, sizeof bytes, 0);
        const bool late  = count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
        if (late) FAIL("no answer in ten seconds");
        if (count <= 0) return false;
        buffer_.append(bytes, static_cast<std::size_t>(count));
        return true;
    }

    int         socket_;
    std::string buffer_;
};

constexpr std::string_view smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

std::string with_length(std::string_view method, std::string_view body)
{
    return std::string(method) + " /form HTTP/1.1\r\nHost: a\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n\r\n";
}

std::string chunk(std::string_view body)
{
    char size[20];
    std::snprintf(size, sizeof size, "%zx\r\n", body.size());
    return size + std::string(body) + "\r\n0\r\n\r\n";
}

/// Since 0.28 httplib itself closes after every status of 400 and more.
bool httplib_closes_after_errors()
{
    return std::atoi(&CPPHTTPLIB_VERSION[std::strlen("0.")]) >= 28;
}

}  // namespace

TEST_CASE("a refused GET gets status, headers and body of the refusal", "[httplib]")
{
    auto       to = refusing();
    connection client(to);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    const auto got = client.receive();

    CHECK(got.status == 429);
    CHECK(got.head.starts_with("HTTP/1.1 429 Too Many Requests\r\n"));
    CHECK(got.one("Retry-After") == "30");
    CHECK(got.one("Cache-Control") == "no-store");
    CHECK(got.one("Content-Type") == "text/plain; charset=utf-8");
    CHECK(got.body == refusal_text);
}

TEST_CASE("a request that is not refused is answered by its route", "[httplib]")
{
    server     to([](const auto&, auto&) { return false; });
    connection client(to);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(client.receive().body == "hello");
}

TEST_CASE("the connection of a refused request without a body is kept", "[httplib]")
{
    if (httplib_closes_after_errors()) {
        SUCCEED("this httplib closes after every error");
        return;
    }
    const std::string request = GENERATE("GET / HTTP/1.1\r\nHost: a\r\n\r\n",
                                         "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
                                         "DELETE / HTTP/1.1\r\nHost: a\r\n\r\n");
    auto       to = refusing();
    connection client(to);
    for (int i = 0; i < 3; ++i) {
        client.send(request);
        const auto got = client.receive();
        CHECK(got.status == 429);
        CHECK(got.all("Connection").empty());
    }
    CHECK(to.served().size() == 3);
}

// Bytes that come together with the head of a request are lost with httplib's read buffer; those
// that come later are what it takes for the next request. So these send the body last.

TEST_CASE("a body that comes after the refusal is not served as a request", "[httplib]")
{
    const std::string method = GENERATE("POST", "PUT", "PATCH", "DELETE", "GET", "OPTIONS");
    auto              to     = refusing();
    connection        client(to);
    client.send(with_length(method, smuggled));

    const auto got = client.receive();
    CHECK(got.status == 429);
    CHECK(got.body == refusal_text);
    CHECK(got.one("Connection") == "close");
    client.send(smuggled);
    CHECK(client.is_closed());
    CHECK(to.served() == std::vector<std::string>{method + " /form"});
}

TEST_CASE("a body that comes with a refused request is not served as a request", "[httplib]")
{
    auto       to = refusing();
    connection client(to);
    client.send(with_length("POST", smuggled) + std::string(smuggled));

    CHECK(client.receive().body == refusal_text);
    CHECK(client.is_closed());
    CHECK(to.served() == std::vector<std::string>{"POST /form"});
}

TEST_CASE("a chunked body of a refused request is not served as a request", "[httplib]")
{
    const std::string coding = GENERATE("chunked", "Chunked", "gzip, chunked");
    auto              to     = refusing();
    connection        client(to);
    client.send("POST /form HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: " + coding + "\r\n\r\n");

    const auto got = client.receive();
    CHECK(got.status == 429);
    CHECK(got.body == refusal_text);
    client.send(chunk(smuggled));
    CHECK(client.is_closed());
    CHECK(to.served() == std::vector<std::string>{"POST /form"});
}

TEST_CASE("a length that is not plainly zero closes, whatever it means", "[httplib]")
{
    struct row {
        const char* value;
        bool        pending;
    };
    const auto each = GENERATE(row{"0", false}, row{"000", false}, row{"", true}, row{"1", true},
                               row{"+0", true}, row{"-1", true}, row{"0x10", true},
                               row{"0, 36", true}, row{"99999999999999999999", true});
    httplib::Request request;
    request.method = "POST";
    request.headers.emplace("Content-Length", "0");
    request.headers.emplace("content-length", each.value);
    INFO(each.value);

    httplib::Response response;
    weir::refuse(request, response, refused);
    CHECK((response.content_provider_ != nullptr) == each.pending);
    CHECK(response.body.empty() == each.pending);
}

TEST_CASE("a refused HEAD gets the headers of the GET and no body (R4)", "[httplib]")
{
    auto       to = refusing();
    connection client(to);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    const auto get = client.receive();

    connection other(to);
    other.send("HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    const auto head = other.receive(true);
    CHECK(head.status == 429);
    for (const auto* name : {"Content-Length", "Content-Type", "Cache-Control", "Retry-After"})
        CHECK(head.one(name) == get.one(name));
    CHECK(other.is_closed());
}

TEST_CASE("a refused HEAD that announces a body gets headers, no body, and no second request",
          "[httplib]")
{
    auto       to = refusing();
    connection client(to);
    client.send(with_length("HEAD", smuggled));

    const auto got = client.receive(true);
    CHECK(got.status == 429);
    CHECK(got.one("Retry-After") == "30");
    CHECK(got.one("Content-Length") == std::to_string(refusal_text.size()));
    client.send(smuggled);
    CHECK(client.is_closed());
    CHECK(to.served() == std::vector<std::string>{"HEAD /form"});
}

TEST_CASE("a refused request that expects 100-continue gets the refusal, and then the end",
          "[httplib]")
{
    auto       to = refusing();
    connection client(to);
    client.send("POST /form HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: " +
                std::to_string(smuggled.size()) + "\r\n\r\n");

    // httplib answers the expectation before any handler of ours is asked.
    CHECK(client.receive().status == 100);
    const auto got = client.receive();
    CHECK(got.status == 429);
    CHECK(got.body == refusal_text);
    client.send(smuggled);
    CHECK(client.is_closed());
    CHECK(to.served() == std::vector<std::string>{"POST /form"});
}

TEST_CASE("a body that a handler has read does not cost the connection", "[httplib]")
{
    if (httplib_closes_after_errors()) {
        SUCCEED("this httplib closes after every error");
        return;
    }
    server to([](const auto&, auto&) { return false; });
    to.native.Post("/form", [](const auto& request, auto& response) {
        weir::refuse(request, response, refused);
    });
    connection client(to);
    for (int i = 0; i < 2; ++i) {
        client.send(with_length("POST", "name=weir") + "name=weir");
        const auto got = client.receive();
        CHECK(got.status == 429);
        CHECK(got.all("Connection").empty());
    }
}

TEST_CASE("a range that was asked for does not cut the refusal", "[httplib]")
{
    const std::string range  = GENERATE("bytes=0-3", "bytes=5000-", "bytes=0-1,4-5");
    const std::string length = GENERATE("0", "1");
    auto              to     = refusing();
    connection        client(to);
    client.send("POST / HTTP/1.1\r\nHost: a\r\nRange: " + range + "\r\nContent-Length: " + length +
                "\r\n\r\n");

    const auto got = client.receive();
    CHECK(got.status == 429);
    CHECK(got.body == refusal_text);
    CHECK(got.all("Content-Range").empty());
    CHECK(got.one("Content-Type") == "text/plain; charset=utf-8");
}

TEST_CASE("fields that the response already has are replaced, not doubled", "[httplib]")
{
    const std::string length = GENERATE("0", "1");
    server            to([](const auto& request, auto& response) {
        response.set_content("page", "text/html");
        response.set_header("cache-control", "public");
        response.set_header("Retry-After", "7");
        weir::refuse(request, response, refused);
        return true;
    });
    connection client(to);
    client.send("POST / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n"
                "Content-Length: " + length + "\r\n\r\n");

    const auto got = client.receive();
    CHECK(got.body == refusal_text);
    CHECK(got.one("Cache-Control") == "no-store");
    CHECK(got.one("Retry-After") == "30");
    CHECK(got.one("Content-Type") == "text/plain; charset=utf-8");
    CHECK(got.all("Connection").size() == (length == "1" || httplib_closes_after_errors() ? 1 : 0));
}

TEST_CASE("an error handler that leaves responses with content alone keeps the refusal",
          "[httplib]")
{
    auto to = refusing();
    to.native.set_error_handler(
        httplib::Server::HandlerWithResponse([](const auto&, auto& response) {
            if (!response.body.empty() || response.content_provider_)
                return httplib::Server::HandlerResponse::Unhandled;
            response.set_content("a page for errors", "text/html");
            return httplib::Server::HandlerResponse::Handled;
        }));
    connection client(to);
    client.send(with_length("POST", smuggled));

    CHECK(client.receive().body == refusal_text);
    client.send(smuggled);
    CHECK(client.is_closed());
    CHECK(to.served() == std::vector<std::string>{"POST /form"});
}

TEST_CASE("the options of a refusal arrive, and a store that is away is a 503", "[httplib]")
{
    server to([](const auto& request, auto& response) {
        auto decision = refused;
        if (request.target == "/away") {
            decision.basis = weir::basis::store_unavailable;
            decision.retry_after.reset();
        }
        weir::refuse(request, response, decision, {.body = weir::refusal_body::minimal});
        return true;
    });
    connection first(to);
    first.send("GET /busy HTTP/1.1\r\nHost: a\r\n\r\n");
    const auto busy = first.receive();
    CHECK(busy.status == 429);
    CHECK(busy.one("Content-Type") == "application/json");
    CHECK(busy.body == R"({"error":"too_many"})");

    connection second(to);
    second.send("GET /away HTTP/1.1\r\nHost: a\r\n\r\n");
    const auto away = second.receive();
    CHECK(away.status == 503);
    CHECK(away.all("Retry-After").empty());
    CHECK(away.body == R"({"error":"unavailable"})");
}

TEST_CASE("a view shows method, target and the peer of the socket", "[httplib]")
{
    std::string method, target;
    weir::peer  peer;
    server      to([&](const auto& request, auto&) {
        const auto seen = weir::view(request);
        method          = seen.method();
        target          = seen.target();
        peer            = seen.peer();
        return false;
    });
    connection client(to);
    client.send("GET /a%20b?c=d&e=%00 HTTP/1.1\r\nHost: a\r\n\r\n");
    client.receive();

    CHECK(method == "GET");
    CHECK(target == "/a%20b?c=d&e=%00");
    CHECK(peer == weir::peer::parse("127.0.0.1"));
}

TEST_CASE("a REMOTE_ADDR header of the client is not believed", "[httplib]")
{
    weir::peer peer;
    server     to([&](const auto& request, auto&) {
        peer = weir::view(request).peer();
        return false;
    });
    connection client(to);
    client.send("GET / HTTP/1.1\r\nHost: a\r\nREMOTE_ADDR: 9.9.9.9\r\nRemote-Addr: 9.9.9.9\r\n"
                "X-Forwarded-For: 9.9.9.9\r\n\r\n");
    client.receive();
    CHECK(peer == weir::peer::parse("127.0.0.1"));
}

TEST_CASE("lines of one name arrive one by one, in order if the view says so", "[httplib]")
{
    std::vector<std::string> lines, none;
    auto                     fidelity = weir::line_fidelity::later_dropped;
    server                   to([&](const auto& request, auto&) {
        const auto seen = weir::view(request);
        fidelity        = seen.lines();
        const auto into = [](auto& list) {
            return [&list](std::string_view line) { list.emplace_back(line); };
        };
        seen.for_each_line("x-forwarded-for", into(lines));
        seen.for_each_line("Forwarded", into(none));
        return false;
    });
    connection client(to);
    client.send("GET / HTTP/1.1\r\nX-Forwarded-For: 1.1.1.1, 2.2.2.2\r\nHost: a\r\n"
                "x-forwarded-for: 3.3.3.3\r\nX-FORWARDED-FOR: 4.4.4.4\r\n\r\n");
    client.receive();

    if (fidelity != weir::line_fidelity::in_order) std::sort(lines.begin(), lines.end());
    CHECK(lines == std::vector<std::string>{"1.1.1.1, 2.2.2.2", "3.3.3.3", "4.4.4.4"});
    CHECK(none.empty());
    CHECK(fidelity != weir::line_fidelity::later_dropped);
    CHECK((fidelity == weir::line_fidelity::in_order) ==
          !weir::detail::loses_line_order<httplib::Headers>);
}

TEST_CASE("headers that keep no order are told apart from those that do", "[httplib]")
{
    using lossy = std::unordered_multimap<std::string, std::string>;
    using exact = std::multimap<std::string, std::string>;
    CHECK(weir::detail::loses_line_order<lossy>);
    CHECK_FALSE(weir::detail::loses_line_order<exact>);
}
