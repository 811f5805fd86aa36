// SPDX-License-Identifier: BSL-1.0

#include "pages.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>

namespace signin {

namespace {

std::string page(std::string_view title, std::string_view body)
{
    std::string made = "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">"
                       "<meta name=\"viewport\" content=\"width=device-width\"><title>";
    made.append(title).append("</title></head>\n<body>\n<main>\n<h1>").append(title);
    return made.append("</h1>\n").append(body).append("</main>\n</body>\n</html>\n");
}

std::string alert(std::string_view told)
{
    if (told.empty()) return {};
    return "<p role=\"alert\">" + escaped(told) + "</p>\n";
}

/// `%H:%M`, or `%Y-%m-%dT%H:%MZ` for programs.
std::string time_text(std::time_t at, const char* form)
{
    std::tm parts{};
    char    text[32] = {};
    ::gmtime_r(&at, &parts);
    std::strftime(text, sizeof text, form, &parts);
    return text;
}

}  // namespace

std::string escaped(std::string_view text)
{
    std::string made;
    for (const char letter : text) {
        switch (letter) {
        case '&':
            made += "&amp;";
            break;
        case '<':
            made += "&lt;";
            break;
        case '>':
            made += "&gt;";
            break;
        case '"':
            made += "&quot;";
            break;
        case '\'':
            made += "&#39;";
            break;
        default:
            made += letter;
        }
    }
    return made;
}

std::string ask_for_name(std::string_view told)
{
    return page("Sign in", alert(told) +
                               R"(<form method="post" action="/code">
<p><label for="user">E-mail address</label><br>
<input id="user" name="user" type="email" maxlength="254" autocomplete="username" required></p>
<p><button>Send me a code</button></p>
</form>
)");
}

std::string ask_for_code(std::string_view user, std::string_view ticket, std::string_view told)
{
    auto body = alert(told);
    body.append("<p>If ").append(escaped(user));
    body.append(R"( has an account here, a code is on its way.</p>
<form method="post" action="/verify">
<input type="hidden" name="user" value=")");
    body.append(escaped(user)).append("\">\n<input type=\"hidden\" name=\"ticket\" value=\"");
    body.append(escaped(ticket)).append(R"(">
<p><label for="code">Code, six digits</label><br>
<input id="code" name="code" inputmode="numeric" maxlength="6"
 autocomplete="one-time-code" required></p>
<p><button>Sign in</button></p>
</form>
<p><a href="/">Ask for another code</a></p>
)");
    return page("Enter your code", body);
}

std::string welcome(std::string_view user)
{
    return page("Signed in",
                "<p role=\"status\">You are signed in as " + escaped(user) + ".</p>\n");
}

std::string too_many(weir::instant now, std::optional<weir::duration> wait)
{
    using std::chrono::ceil, std::chrono::minutes;
    std::string told = "<p role=\"alert\">There were too many tries.";
    if (wait) {
        const auto at    = ceil<minutes>(now + *wait);
        const auto shown = std::chrono::system_clock::to_time_t(at);
        const auto count = std::max(ceil<minutes>(*wait), minutes(1)).count();
        told.append(" Try again at <time datetime=\"").append(time_text(shown, "%Y-%m-%dT%H:%MZ"));
        told.append("\">").append(time_text(shown, "%H:%M")).append(" UTC</time>, in ");
        told.append(std::to_string(count)).append(count == 1 ? " minute." : " minutes.");
    }
    return page("Too many tries", told + "</p>\n<p><a href=\"/\">Back to the start</a></p>\n");
}

std::string unavailable()
{
    return page("Not available now",
                "<p role=\"alert\">Nobody can sign in at the moment. Try again soon.</p>\n");
}

}  // namespace signin
