// SPDX-License-Identifier: BSL-1.0

#include "routes.hpp"

#include "pages.hpp"

#include <cstdio>
#include <exception>

namespace signup {

namespace {

constexpr std::size_t most_bytes = 65'536;  // of a body

/// No script of a stranger runs here, nothing of ours is framed, and links with codes in them are
/// told to nobody.
const httplib::Headers& security()
{
    static const httplib::Headers all = {
        {"Content-Security-Policy",
         "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
         "img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Cache-Control", "no-store"}};
    return all;
}

std::string_view words_for(int status)
{
    if (status == 404) return "There is nothing here.";
    if (status == 413) return "That is more than fits in here.";
    return status < 500 ? "This request could not be read." : "Something failed. Please try again.";
}

void explain(const httplib::Request&, httplib::Response& to)
{
    if (to.body.empty()) answer(to, to.status, write_notice("Sorry", words_for(to.status)));
}

void fail(const httplib::Request&, httplib::Response& to, std::exception_ptr what)
{
    try {
        std::rethrow_exception(what);
    } catch (const storage_error& failed) {
        std::fprintf(stderr, "weir-signup: %s\n", failed.what());
        answer(to, 503,
               write_notice("Sorry", "This cannot be done right now. Please try again "
                                     "in a minute."));
    } catch (const std::exception& failed) {
        std::fprintf(stderr, "weir-signup: a request failed: %s\n", failed.what());
        answer(to, 500, write_notice("Sorry", words_for(500)));
    }
}

void health(service& with, httplib::Response& to)
{
    bool good = true;
    try {
        good = with.kept.with([](records& on) { return on.probe(), true; });
    } catch (const storage_error&) {
        good = false;
    }
    to.status = good ? 200 : 503;
    to.set_content(good ? R"({"status":"ok"})" : R"({"status":"storage_unavailable"})",
                   "application/json");
}

}  // namespace

void answer(httplib::Response& to, int status, const std::string& page)
{
    to.status = status;
    to.set_content(page, "text/html; charset=utf-8");
}

/// A body is read even where it is of no use: what is left on a connection would be taken for the
/// next request. httplib's own reader stops at 8 KiB of a form.
std::optional<fields> read_form(const httplib::Request& from, httplib::Response& to,
                                const httplib::ContentReader& body)
{
    std::string bytes;
    const auto  keep = [&](const char* part, std::size_t size) {
        bytes.append(part, size);
        return true;
    };
    const bool parts = from.is_multipart_form_data();
    const bool read =
        parts ? body([](const httplib::MultipartFormData&) { return true; }, keep) : body(keep);
    if (!read) {
        if (to.status < 400) to.status = 400;
        return std::nullopt;
    }
    const auto type = from.get_header_value("Content-Type");
    if (parts || type.rfind("application/x-www-form-urlencoded", 0) != 0) {
        answer(to, 415, write_notice("Sorry", "Only the form of this site is taken here."));
        return std::nullopt;
    }
    auto made = fields::parse(bytes);
    if (!made) answer(to, 400, write_notice("Sorry", words_for(400)));
    return made;
}

void add_routes(httplib::Server& server, service& with)
{
    server.set_payload_max_length(most_bytes);
    server.set_default_headers(security());
    server.set_error_handler(explain);
    server.set_exception_handler(fail);
    server.Get("/health",
               [&with](const httplib::Request&, httplib::Response& to) { health(with, to); });
    server.Get("/style.css", [css = style_sheet(with.trap)](const auto&, auto& to) {
        to.set_content(css, "text/css");
    });
    add_forms(server, with);
    add_desk(server, with);
}

}  // namespace signup
