// SPDX-License-Identifier: BSL-1.0

// GET /f/{id}: something to try an endpoint with. No script, no styles, nothing from elsewhere.

#include "routes.hpp"

#include <string>

namespace forms {

namespace {

/// The id stands in it as it is: it is made of letters, digits, - and _.
std::string html_form(std::string_view id)
{
    std::string page = R"(<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>)";
    page.append(id).append("</title></head>\n<body>\n<h1>").append(id).append("</h1>\n");
    page.append(R"(<form method="post" action="/f/)").append(id).append(R"(">
<p><label>Name<br><input name="name" autocomplete="name"></label></p>
<p><label>E-mail<br><input name="email" type="email" autocomplete="email"></label></p>
<p><label>Message<br><textarea name="message" rows="6" cols="50"></textarea></label></p>
<p><button>Send</button></p>
</form>
</body>
</html>
)");
    return page;
}

}  // namespace

response form_page(const service& with, std::string_view id)
{
    if (!is_endpoint_id(id)) return invalid_endpoint_id(http::status::not_found);
    const auto active = with.endpoints.active(id);
    if (!active) return unknown_endpoint();
    if (!*active) return inactive_endpoint();

    auto made = answer(http::status::ok, "text/html; charset=utf-8", html_form(id));
    made.set("Content-Security-Policy", "default-src 'none'; form-action 'self'; base-uri 'none'");
    made.set("X-Content-Type-Options", "nosniff");
    return made;
}

}  // namespace forms
