// SPDX-License-Identifier: BSL-1.0

#include "demo.hpp"

#include "net.hpp"

#include <memory>
#include <string_view>
#include <thread>
#include <utility>

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

namespace proxy {

namespace http = boost::beast::http;

namespace {

constexpr std::string_view configuration = R"([basic]
status     = "127.0.0.1:6189"
access_log = "stdout"

[servers.web]
addr      = "127.0.0.1:6188"
locations = ["api", "kept", "trial", "rest"]

[upstreams.app]
addrs = ["127.0.0.1:UPSTREAM"]

[locations.api]       # 5 requests in 10 seconds from an address, and the client is told
path     = "/api"
upstream = "app"
plugins  = ["perAddress"]

[locations.kept]      # kept responses cost nothing
path     = "/kept"
upstream = "app"
plugins  = ["perMiss"]
cache    = true

[locations.trial]     # refuses nothing, and logs what it would refuse
path     = "/trial"
upstream = "app"
plugins  = ["trial"]

[locations.rest]
path     = "/"
upstream = "app"

[plugins.perAddress]
category = "limit"
max      = 5
interval = "10s"
headers  = true

[plugins.perMiss]
category = "limit"
max      = 2
interval = "10s"
step     = "proxy_upstream"
headers  = true

[plugins.trial]
category = "limit"
max      = 2
interval = "10s"
dry_run  = true
)";

/// One connection.
struct visitor : std::enable_shared_from_this<visitor> {
    explicit visitor(tcp_socket&& from) : socket(std::move(from)) {}

    void read()
    {
        asked = {};
        http::async_read(socket, buffer, asked,
                         [self = shared_from_this()](const error_code& failed, std::size_t) {
                             if (!failed) self->answer();
                         });
    }

    void answer()
    {
        made = {http::status::ok, 11};
        made.set(http::field::content_type, "text/plain");
        if (asked.target().starts_with("/kept")) made.set(http::field::cache_control, "max-age=5");
        made.body() = "the upstream was asked for ";
        made.body().append(asked.target().data(), asked.target().size()).append("\n");
        made.keep_alive(asked.keep_alive());
        made.prepare_payload();
        if (asked.method() == http::verb::head) made.body().clear();
        http::async_write(socket, made,
                          [self = shared_from_this()](const error_code& failed, std::size_t) {
                              if (!failed && self->made.keep_alive()) self->read();
                          });
    }

    tcp_socket                        socket;
    boost::beast::flat_buffer         buffer;
    http::request<http::string_body>  asked;
    http::response<http::string_body> made;
};

}  // namespace

struct demo_upstream::parts {
    parts() : acceptor(context, tcp::endpoint(asio::ip::address_v4::loopback(), 0)) { accept(); }

    void accept()
    {
        acceptor.async_accept([this](const error_code& failed, tcp_socket socket) {
            if (failed) return;
            std::make_shared<visitor>(std::move(socket))->read();
            accept();
        });
    }

    asio::io_context context{1};
    tcp_acceptor     acceptor;
    std::thread      thread;
};

demo_upstream::demo_upstream() : parts_(std::make_unique<parts>())
{
    parts_->thread = std::thread([all = parts_.get()] { all->context.run(); });
}

demo_upstream::~demo_upstream()
{
    parts_->context.stop();
    parts_->thread.join();
}

unsigned short demo_upstream::port() const noexcept
{
    return parts_->acceptor.local_endpoint().port();
}

std::string demo_configuration(unsigned short upstream)
{
    std::string text(configuration);
    return text.replace(text.find("UPSTREAM"), 8, std::to_string(upstream));
}

std::string demo_text()
{
    return R"(
a limit     for i in 1 2 3 4 5 6; do curl -sD - http://127.0.0.1:6188/api; done
a cache     for i in 1 2 3 4 5 6; do curl -sD - http://127.0.0.1:6188/kept; done
a dry run   for i in 1 2 3 4; do curl -s http://127.0.0.1:6188/trial; done
the figures curl http://127.0.0.1:6189/
Ctrl-C ends it. With a file of your own: weir-proxy [-t] CONFIG.toml, where -t checks it only.

)";
}

}  // namespace proxy
