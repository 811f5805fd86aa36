// SPDX-License-Identifier: BSL-1.0
#pragma once

// The heads that a proxy writes: what came in without the fields that were for one hop (RFC 9110
// section 7.6.1), with the framing of its own and what it adds.

#include "head.hpp"

#include "weir/extract/request.hpp"
#include "weir/http/refusal.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace proxy {

using fields = std::span<const weir::refusal_header>;

struct request_context {
    weir::peer peer         = {};     ///< Whom we heard from; goes to the end of X-Forwarded-For.
    bool       peer_trusted = false;  ///< What it says of those before it is kept, else left out.
    bool       secure       = false;
    bool       via          = false;

    std::string_view ja4_header = {};  ///< Of a peer that is not trusted it is left out.
};

/// The head for the upstream. The body goes as it came.
void write_request(std::string& to, const request_head& from, const request_context& with);

/// How a response's body goes to the client.
enum class body_way : std::uint8_t {
    as_it_is,   ///< None, of a length, or in the upstream's chunks.
    in_chunks,  ///< The upstream's ends with its connection.
    bare,       ///< Content alone, its end is that of the connection: for HTTP/1.0.
};

struct response_context {
    body_way         way        = body_way::as_it_is;
    bool             keep_alive = true;
    int              minor      = 1;  ///< Of the client.
    bool             via        = false;
    std::string_view date       = {};  ///< If the response has none.
    fields           added      = {};  ///< Replace fields of the same names.
};

void write_response(std::string& to, const response_head& from, const response_context& with);

/// A response of our own, up to its body. No Content-Length if `length` is none.
void write_own(std::string& to, int status, fields own, std::optional<std::size_t> length,
               const response_context& with);

/// The head of a response to keep: what is left of it for another connection, up to the framing.
void write_kept(std::string& to, const response_head& from);

/// What follows a kept head, up to the body.
void write_rest_of_kept(std::string& to, std::size_t length, std::int64_t age,
                        const response_context& with);

[[nodiscard]] std::string_view reason_of(int status) noexcept;

}  // namespace proxy
