// SPDX-License-Identifier: BSL-1.0

#include "pages.hpp"

#include <chrono>
#include <ctime>

namespace signup {

namespace {

std::string in_html(std::string_view text) { return weir::detail::in_html(readable(text)); }

constexpr std::string_view head = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="/style.css"><link rel="icon" href="data:,">
<title>)";

std::string page(std::string_view title, const std::string& body, std::string_view more = "")
{
    return std::string(head) + in_html(title) + "</title>" + std::string(more) +
           "</head><body><main>\n<h1>" + in_html(title) + "</h1>\n" + body +
           "</main></body></html>\n";
}

/// The field's label, the field and, if there is one, what is wrong with it.
struct control {
    std::string_view   name, label, attributes;
    const std::string& value;
    const std::string& wrong;
};

std::string described(const control& of)
{
    const std::string name(of.name);
    return of.wrong.empty() ? "" : " aria-invalid=\"true\" aria-describedby=\"" + name + "-wrong\"";
}

std::string complaint(const control& of)
{
    if (of.wrong.empty()) return "";
    return "<p class=\"wrong\" id=\"" + std::string(of.name) + "-wrong\">" + in_html(of.wrong) +
           "</p>\n";
}

std::string opened(const control& of, std::string_view element)
{
    const std::string name(of.name);
    return "<label for=\"" + name + "\">" + std::string(of.label) + "</label>\n" +
           std::string(element) + " id=\"" + name + "\" name=\"" + name + "\" " +
           std::string(of.attributes) + described(of);
}

std::string input(const control& of)
{
    return opened(of, "<input") + " value=\"" + in_html(of.value) + "\">\n" + complaint(of);
}

/// The parser drops a line feed after the tag, so that one in the value needs one before it.
std::string text_area(const control& of)
{
    return opened(of, "<textarea") + ">\n" + in_html(of.value) + "</textarea>\n" + complaint(of);
}

std::string hidden(std::string_view name, std::string_view value)
{
    return "<input type=\"hidden\" name=\"" + std::string(name) + "\" value=\"" + in_html(value) +
           "\">\n";
}

std::string_view title_of(const form_page& of)
{
    if (of.to == "/revise") return "Change your application";
    return of.to == "/reissue" ? "Send the link again" : "Apply to join";
}

std::string fields_of(const form_page& of)
{
    const auto& v = of.values;
    const auto& w = of.wrong;
    std::string made;
    if (of.to != "/revise")
        made += input({"email", "E-mail address",
                       "type=\"text\" inputmode=\"email\" autocomplete=\"email\" required", v.email,
                       w.email});
    if (of.to == "/reissue") return made;
    made += input({"name", "Name", "type=\"text\" autocomplete=\"name\" required", v.name, w.name});
    made += text_area({"about", "What would you like to do here?", "rows=\"6\"", v.about, w.about});
    return made;
}

}  // namespace

std::string write_form(const form_page& of, const weir::honeypot& trap)
{
    std::string body;
    if (!of.notice.empty())
        body += "<p class=\"notice\" role=\"alert\">" + in_html(of.notice) + "</p>\n";
    // novalidate: what is wrong is said by us, in one way, and with the values kept.
    body += "<form method=\"post\" action=\"" + std::string(of.to) + "\" novalidate>\n";
    body += fields_of(of) + trap.markup() + '\n' + hidden("form_token", of.token);
    if (!of.code.empty()) body += hidden("code", of.code);
    body += "<button>Send</button>\n</form>\n";
    return page(title_of(of), body);
}

std::string write_notice(std::string_view title, std::string_view text)
{
    return page(title, "<p>" + in_html(text) + "</p>\n");
}

std::string received_page()
{
    return page("Thank you",
                "<p>We have received it. A mail with a link is on its way to you; when many people "
                "apply at once it may take some hours, or a day.</p>\n"
                "<p>No mail tomorrow? <a href=\"/reissue\">Have the link sent again.</a></p>\n");
}

std::string confirm_page(std::string_view code)
{
    return page("Confirm your application",
                "<form method=\"post\" action=\"/confirm\">\n" + hidden("code", code) +
                    "<p>One click, and it is yours.</p>\n<button>Confirm</button>\n</form>\n");
}

std::string in_words(weir::instant at)
{
    const auto count = static_cast<std::time_t>(
        std::chrono::floor<std::chrono::seconds>(at.time_since_epoch()).count());
    std::tm parts{};
    ::gmtime_r(&count, &parts);
    constexpr const char* months[] = {"January",   "February", "March",    "April",
                                      "May",       "June",     "July",     "August",
                                      "September", "October",  "November", "December"};
    char                  rest[40] = {};
    std::strftime(rest, sizeof rest, " %Y, %H:%M UTC", &parts);
    return std::to_string(parts.tm_mday) + ' ' + months[parts.tm_mon] + rest;
}

std::string in_words(std::chrono::seconds wait)
{
    const auto minutes = std::chrono::ceil<std::chrono::minutes>(wait).count();
    if (minutes <= 1) return "a minute";
    if (minutes <= 90) return std::to_string(minutes) + " minutes";
    return std::to_string(std::chrono::ceil<std::chrono::hours>(wait).count()) + " hours";
}

std::string style_sheet(const weir::honeypot& trap)
{
    return std::string(R"(:root{color-scheme:light dark;--paper:#fff;--ink:#1b1f24;--line:#8a929c;
--sent:#1f6f5c;--queued:#d08a1d;--wrong:#b3261e}
@media (prefers-color-scheme:dark){:root{--paper:#14171a;--ink:#e6e8ea;--line:#7d8690;
--sent:#4fb59b;--queued:#e0a548;--wrong:#ff8a80}}
body{margin:0;background:var(--paper);color:var(--ink);font:1rem/1.5 system-ui,sans-serif}
main{max-width:34rem;margin:0 auto;padding:1rem}
main.wide{max-width:72rem}
label{display:block;margin-top:1rem;font-weight:600}
input,textarea{box-sizing:border-box;width:100%;padding:.5rem;font:inherit;color:inherit;
background:transparent;border:1px solid var(--line);border-radius:.25rem}
[aria-invalid]{border-color:var(--wrong)}
button{margin-top:1rem;padding:.5rem 1.5rem;font:inherit;font-weight:600;color:var(--paper);
background:var(--sent);border:0;border-radius:.25rem}
:focus-visible{outline:3px solid var(--queued);outline-offset:2px}
.wrong{margin:.25rem 0 0;color:var(--wrong)}
.notice{padding:.75rem;border-left:4px solid var(--queued)}
svg{display:block;width:100%;height:auto;overflow:visible}
svg text{fill:var(--ink);font-size:12px}
.sent{fill:var(--sent);background:var(--sent)}.queued{fill:var(--queued);background:var(--queued)}
.axis{stroke:var(--line)}.cap{stroke:var(--wrong);stroke-width:2;stroke-dasharray:6 4}
.key span{display:inline-block;width:.8rem;height:.8rem;margin:0 .3rem 0 1rem}
.key .dash{height:0;border-top:2px dashed var(--wrong);width:1.4rem;vertical-align:middle}
)") + trap.css() +
           '\n';
}

}  // namespace signup
