// SPDX-License-Identifier: BSL-1.0
#pragma once

// The sockets of this program: of one kind of executor each, since a type-erased one costs an
// allocation or two a request.

#include <cstdint>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/system/error_code.hpp>

namespace proxy {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

using executor     = asio::io_context::executor_type;
using tcp_socket   = asio::basic_stream_socket<tcp, executor>;
using tcp_acceptor = asio::basic_socket_acceptor<tcp, executor>;
using tls_stream   = asio::ssl::stream<tcp_socket>;

}  // namespace proxy
