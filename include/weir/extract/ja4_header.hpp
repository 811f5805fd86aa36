// SPDX-License-Identifier: BSL-1.0
#pragma once

// The fingerprint of a client whose TLS ends at a proxy of your own, which tells it in a header.
// Anybody can write such a header, so it is read from the peers that you name and from no other.

#include <string>
#include <vector>

#include "weir/extract/field.hpp"
#include "weir/extract/header.hpp"
#include "weir/extract/ja4.hpp"
#include "weir/extract/request.hpp"
#include "weir/extract/trusted_peers.hpp"

namespace weir {

struct ja4_header_options {
    /// Your proxies, as in `client_ip_options`. By default nobody is believed.
    std::vector<std::string> trusted = {};

    /// The header that they overwrite, whatever a client sends in it. One that they only add is the
    /// client's to choose where a server shows the first of several lines.
    std::string header = "X-JA4";
};

/// Reads the fingerprint that a proxy measured:
///
///     weir::ja4_header fingerprint({.trusted = {"10.0.0.0/8"}});
///     per_stack.admit(fingerprint(request));
///
/// Immutable, hence thread-safe.
class ja4_header {
public:
    /// Throws std::invalid_argument for an entry of `trusted` that is none and for the name of no
    /// header.
    explicit ja4_header(const ja4_header_options& options)
        : trusted_("ja4_header", options.trusted), header_(options.header)
    {
    }

    /// Missing if the peer is not trusted, whatever the header says; malformed if it is trusted and
    /// its value has not the form of a fingerprint; else as `header`. Borrows from the request;
    /// linear in the bytes of its lines and in the number of ranges; no allocation.
    [[nodiscard]] field operator()(const request& from) const
    {
        if (!trusted_.hold(from.peer())) return field(absence::missing);
        const auto value = header_(from);
        if (value && !tls_fingerprint::parse(value.bytes())) return field(absence::malformed);
        return value;
    }

private:
    trusted_peers trusted_;
    header        header_;
};

}  // namespace weir
