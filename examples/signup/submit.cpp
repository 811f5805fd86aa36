// SPDX-License-Identifier: BSL-1.0

// The forms. In this order: the trap, which tells a script nothing; the token; what was written;
// the limits; the row. Whoever does not get through has his form back, with all that he wrote and a
// fresh token, but for scripts, who are thanked.

#include "routes.hpp"

#include "mail/address.hpp"
#include "pages.hpp"

#include "weir/adapt/httplib.hpp"
#include "weir/http/refusal.hpp"

#include <cstdio>
#include <utility>

namespace signup {

namespace {

/// A trap that was filled slowly costs so many times as much.
constexpr std::uint64_t cost_of_suspicion = 5;

/// A form that was sent, and the way back to whoever sent it.
struct posted {
    service&                with;
    const httplib::Request& from;
    httplib::Response&      to;
    fields                  sent;
    form_page               page;
    weir::token_check       token = {};
    std::uint64_t           cost  = 1;

    void hand_back(int status, std::string notice)
    {
        page.notice = std::move(notice);
        page.token  = with.tokens.issue(page.to);
        answer(to, status, write_form(page, with.trap));
    }
};

void thank(httplib::Response& to) { to.set_redirect("/received", 303); }

/// False if the answer is made.
bool passes_checks(posted& one)
{
    one.token         = one.with.tokens.check(one.sent["form_token"], one.page.to);
    const auto& value = one.sent[one.with.trap.name()];
    const auto  trap =
        one.token ? one.with.trap.check(value, one.token.age) : one.with.trap.check(value);
    if (trap == weir::trap::sprung) return thank(one.to), false;
    if (trap == weir::trap::suspicious) one.cost = cost_of_suspicion;
    if (!one.token) {
        one.hand_back(400, "This page was open for too long, or was sent too quickly to be read. "
                           "Nothing is lost: please send it once more.");
        return false;
    }
    if (one.page.wrong.any()) return one.hand_back(400, "Please look at this again."), false;
    return true;
}

/// False if the answer is made: 429, or 503 where the counters do not answer.
bool passes_limits(posted& one, std::string_view canonical)
{
    const auto made =
        one.with.limits->admit(one.with.source(weir::view(one.from)), canonical, one.cost);
    if (made) return true;
    const weir::refusal refused(made);
    std::string         notice = "This cannot be done right now. Please try again in a minute.";
    if (const auto wait = weir::retry_after_seconds(made)) {
        one.to.set_header("Retry-After", std::to_string(*wait));
        notice = "That was a lot, from you or about this address. Please send it again in " +
                 in_words(seconds(*wait)) + '.';
    }
    one.hand_back(refused.status(), std::move(notice));
    return false;
}

/// What became of it, to the sender: the same whether an address is known or not.
void finish(posted& one, receipt outcome)
{
    switch (outcome) {
    case receipt::stored:
    case receipt::repeated:
    case receipt::unknown:
        one.with.on_queued();
        return thank(one.to);
    case receipt::token_used:
        return one.hand_back(400, "This was sent before, and we have received it. Send it "
                                  "once more only if something has changed.");
    case receipt::token_full:
    case receipt::no_window:
        return one.hand_back(503, "So many people are here that this cannot be taken right "
                                  "now. Please send it again later.");
    }
}

/// A database that fails costs nobody his words.
template <class Work>
void keep(posted& one, Work work)
{
    std::optional<receipt> outcome;
    try {
        outcome = one.with.kept.with(work);
    } catch (const storage_error& failed) {
        std::fprintf(stderr, "weir-signup: %s\n", failed.what());
    }
    if (outcome) finish(one, *outcome);
    else one.hand_back(503, "This cannot be kept right now. Please send it again in a minute.");
}

std::string canonical_of(const service& with, std::string_view email)
{
    const auto read = mail_address::parse(email);
    return read ? read->canonical(with.chosen.fold_tags, with.chosen.dotless_domains) : "";
}

void apply(posted one)
{
    one.page.wrong = complaints_of(one.page.values);
    if (!passes_checks(one)) return;
    const auto&       values = one.page.values;
    const application made{.id        = random_id(),
                           .canonical = canonical_of(one.with, values.email),
                           .email     = mail_address::parse(values.email)->text(),
                           .name      = values.name,
                           .about     = values.about};
    if (!passes_limits(one, made.canonical)) return;
    keep(one, [&](records& on) { return on.apply(made, one.token); });
}

void reissue(posted one)
{
    one.page.wrong.email = complaints_of(one.page.values).email;
    if (!passes_checks(one)) return;
    const auto canonical = canonical_of(one.with, one.page.values.email);
    if (!passes_limits(one, canonical)) return;
    keep(one, [&](records& on) { return on.reissue(canonical, one.token); });
}

/// None, and the response says why, if the link is not ours or has expired.
std::optional<challenge> open_link(service& with, std::string_view code, httplib::Response& to)
{
    const auto id = with.link.mail_of(code);
    const auto found =
        id ? with.kept.with([&](records& on) { return on.challenge_of(*id); }) : std::nullopt;
    if (!found) {
        answer(to, 404, write_notice("Sorry", "This link is not whole. Please copy all of it."));
        return std::nullopt;
    }
    if (found->expires >= weir::now()) return found;
    form_page again{.to     = "/reissue",
                    .values = {.email = found->of.email},
                    .notice = "This link has expired. We can send you a new one.",
                    .token  = with.tokens.issue("/reissue")};
    answer(to, 410, write_form(again, with.trap));
    return std::nullopt;
}

void revise(posted one)
{
    one.page.code        = one.sent["code"];
    one.page.wrong       = complaints_of(one.page.values);
    one.page.wrong.email = "";
    if (!passes_checks(one)) return;
    const auto link = open_link(one.with, one.page.code, one.to);
    if (!link || !passes_limits(one, link->of.canonical)) return;
    const application changed{
        .id = link->of.id, .name = one.page.values.name, .about = one.page.values.about};
    keep(one, [&](records& on) { return on.revise(changed, one.token); });
}

void confirm(service& with, const fields& sent, httplib::Response& to)
{
    const auto link = open_link(with, sent["code"], to);
    if (!link) return;
    with.kept.with([&](records& on) { return on.confirm(link->of.id); });
    answer(to, 200, write_notice("Confirmed", "Thank you. Your application is complete."));
}

using handler = void (*)(posted);

void add_form(httplib::Server& server, service& with, const char* path, handler submitted)
{
    server.Post(path, [=, &with](const httplib::Request& from, httplib::Response& to,
                                 const httplib::ContentReader& body) {
        auto sent = read_form(from, to, body);
        if (!sent) return;
        form_page page{.to = path, .values = entries_of(*sent)};
        submitted({.with = with,
                   .from = from,
                   .to   = to,
                   .sent = std::move(*sent),
                   .page = std::move(page)});
    });
}

void show_form(service& with, form_page page, httplib::Response& to)
{
    page.token = with.tokens.issue(page.to);
    answer(to, 200, write_form(page, with.trap));
}

void add_links(httplib::Server& server, service& with)
{
    // A GET changes nothing: programs that look at mails follow the links in them.
    server.Get("/confirm", [&with](const httplib::Request& from, httplib::Response& to) {
        const auto code = from.get_param_value("code");
        if (open_link(with, code, to)) answer(to, 200, confirm_page(code));
    });
    server.Get("/revise", [&with](const httplib::Request& from, httplib::Response& to) {
        const auto code = from.get_param_value("code");
        const auto link = open_link(with, code, to);
        if (!link) return;
        show_form(with,
                  {.to     = "/revise",
                   .values = {.name = link->of.name, .about = link->of.about},
                   .code   = code},
                  to);
    });
    server.Post("/confirm", [&with](const httplib::Request& from, httplib::Response& to,
                                    const httplib::ContentReader& body) {
        if (const auto sent = read_form(from, to, body)) confirm(with, *sent, to);
    });
}

}  // namespace

void add_forms(httplib::Server& server, service& with)
{
    server.Get("/", [&with](const auto&, httplib::Response& to) { show_form(with, {}, to); });
    server.Get("/reissue", [&with](const auto&, httplib::Response& to) {
        show_form(with, {.to = "/reissue"}, to);
    });
    server.Get("/received",
               [](const auto&, httplib::Response& to) { answer(to, 200, received_page()); });
    add_form(server, with, "/apply", apply);
    add_form(server, with, "/reissue", reissue);
    add_form(server, with, "/revise", revise);
    add_links(server, with);
}

}  // namespace signup
