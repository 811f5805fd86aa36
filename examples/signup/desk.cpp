// SPDX-License-Identifier: BSL-1.0

// The operator's page, for whoever has SIGNUP_ADMIN_TOKEN: as a Bearer token, or as the password
// that a browser asks for, under any name.

#include "routes.hpp"

#include "mail/links.hpp"
#include "pages.hpp"

#include <functional>
#include <string_view>
#include <vector>

#include <openssl/evp.h>

namespace signup {

namespace {

/// What follows the first colon of base64 (RFC 7617); empty if it is none.
std::string password_of(std::string_view encoded)
{
    if (encoded.size() > 1024) return "";
    std::vector<unsigned char> plain(encoded.size() + 1);
    const int                  size =
        EVP_DecodeBlock(plain.data(), reinterpret_cast<const unsigned char*>(encoded.data()),
                        static_cast<int>(encoded.size()));
    if (size <= 0) return "";
    std::string text(plain.begin(), plain.begin() + size);
    while (text.ends_with('\0')) text.pop_back();  // what the padding became
    const auto colon = text.find(':');
    return colon == text.npos ? "" : text.substr(colon + 1);
}

bool is_operator(const service& with, const httplib::Request& from)
{
    const auto       given = from.get_header_value("Authorization");
    std::string_view sent  = given;
    const auto       after = [&](std::string_view scheme) {
        if (!weir::same_header_name(sent.substr(0, scheme.size()), scheme)) return false;
        sent.remove_prefix(scheme.size());
        return true;
    };
    if (after("Bearer ")) return same_secret(sent, with.chosen.admin_token);
    return after("Basic ") && same_secret(password_of(sent), with.chosen.admin_token);
}

}  // namespace

void add_desk(httplib::Server& server, service& with)
{
    using show     = std::function<void(httplib::Response&)>;
    const auto add = [&](const char* path, show shown) {
        server.Get(path, [&with, shown = std::move(shown)](const httplib::Request& from,
                                                           httplib::Response&      to) {
            if (is_operator(with, from)) return shown(to);
            to.set_header("WWW-Authenticate", "Basic realm=\"weir-signup\"");
            answer(to, 401, write_notice("Sorry", "This page is the operator's."));
        });
    };
    add("/operator", [](httplib::Response& to) { answer(to, 200, operator_page()); });
    add("/operator.js", [](httplib::Response& to) {
        to.set_content(std::string(operator_script()), "text/javascript");
    });
    add("/operator/backlog", [&with](httplib::Response& to) {
        const auto seen =
            with.kept.with([&](records& on) { return on.look_back(with.chosen.caps); });
        to.set_content(write_backlog(seen, with.chosen.caps), "application/json");
    });
}

}  // namespace signup
