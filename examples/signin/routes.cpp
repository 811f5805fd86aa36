// SPDX-License-Identifier: BSL-1.0

#include "routes.hpp"

#include "pages.hpp"

#include "weir/adapt/httplib.hpp"
#include "weir/extract/address.hpp"
#include "weir/http/refusal.hpp"
#include "weir/remote/digest.hpp"

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

namespace signin {

namespace {

constexpr std::size_t longest_name = 254, longest_ticket = 128, longest_code = 64;

bool wants_page(const httplib::Request& from)
{
    return from.get_header_value("Accept").find("text/html") != std::string::npos;
}

void json(httplib::Response& to, int status, const std::string& body)
{
    to.status = status;
    to.set_content(body, "application/json");
}

void error(httplib::Response& to, int status, std::string_view name)
{
    json(to, status, R"({"error":")" + std::string(name) + "\"}");
}

void html(httplib::Response& to, int status, const std::string& page)
{
    to.status = status;
    to.set_content(page, "text/html; charset=utf-8");
}

/// The one value of this name, of the form or of the target; borrowed from the request.
weir::field value_of(const httplib::Request& from, const std::string& name, std::size_t most)
{
    const auto [first, end] = from.params.equal_range(name);
    if (first == end) return weir::field();
    if (std::next(first) != end) return weir::field(weir::absence::ambiguous);
    return {std::string_view(first->second), most};
}

std::string text_of(const weir::field& value) { return std::string(value.bytes()); }

std::string key_text(const weir::key& who)
{
    std::string text;
    for (const auto half : {who.high, who.low})
        for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[half >> shift & 15];
    return text;
}

std::optional<weir::key> key_from(std::string_view text)
{
    weir::key  who;
    const auto half = [&](std::size_t at, std::uint64_t& into) {
        const auto end  = text.data() + at + 16;
        const auto read = std::from_chars(text.data() + at, end, into, 16);
        return read.ec == std::errc{} && read.ptr == end;
    };
    if (text.size() != 32 || !half(0, who.high) || !half(16, who.low)) return std::nullopt;
    return who;
}

std::string instant_text(weir::instant at)
{
    const auto second = std::chrono::system_clock::to_time_t(std::chrono::ceil<seconds>(at));
    std::tm    parts{};
    char       text[32] = {};
    ::gmtime_r(&second, &parts);
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text;
}

/// Digests are compared: how far they agree tells nothing of the token.
bool is_operator(const httplib::Request& from, const std::string& token)
{
    return weir::remote::hash(token, from.get_header_value("Authorization")) ==
           weir::remote::hash(token, "Bearer " + token);
}

}  // namespace

routes::routes(const settings& chosen, const std::string& secret, const accounts& known,
               door& limits, mail& letters)
    : known_(known), limits_(limits), letters_(letters), codes_(secret, chosen.code_lifetime),
      devices_({.secret = secret}), source_(chosen.client), prefix_(chosen.client.prefix),
      token_(chosen.admin_token)
{
}

void routes::add_to(httplib::Server& server)
{
    server.Get("/", [](const request&, response& to) { html(to, 200, ask_for_name("")); });
    server.Post("/code", [this](const request& from, response& to) { send_code(from, to); });
    server.Post("/verify", [this](const request& from, response& to) { verify(from, to); });

    const auto guarded = [this](auto deed) {
        return [this, deed](const request& from, response& to) {
            if (is_operator(from, token_)) return (this->*deed)(from, to);
            to.set_header("WWW-Authenticate", "Bearer");
            error(to, 401, "unauthorized");
        };
    };
    server.Get("/admin/locked", guarded(&routes::locked));
    server.Post("/admin/clear", guarded(&routes::clear));
}

void routes::send_code(const request& from, response& to)
{
    const auto who = visitor_of(from, to);
    if (!who) return;
    const auto allowed = limits_.may_send(*who);
    if (!allowed) return refuse(from, to, allowed);

    auto [ticket, code] = codes_.issue(who->user, weir::now());
    letters_.post(who->user, std::move(code));
    if (wants_page(from)) return html(to, 200, ask_for_code(who->user, ticket, ""));
    json(to, 200, R"({"ticket":")" + ticket + "\"}");
}

void routes::verify(const request& from, response& to)
{
    const auto who = visitor_of(from, to);
    if (!who) return;
    auto attempt = limits_.claim(*who);
    if (!attempt) return refuse(from, to, attempt.decision());

    const auto opened = opens(*who, from);
    if (opened) {
        attempt.succeeded();
        return admit(*who, from, to);
    }
    attempt.failed();
    if (opened.basis == weir::basis::store_unavailable) return refuse(from, to, opened);
    if (!wants_page(from)) return error(to, 403, "wrong_code");
    const auto ticket = text_of(value_of(from, "ticket", longest_ticket));
    html(to, 403, ask_for_code(who->user, ticket, "This code is not right."));
}

weir::decision routes::opens(const visitor& who, const request& from)
{
    const auto ticket = value_of(from, "ticket", longest_ticket);
    const auto code   = value_of(from, "code", longest_code);
    const bool known  = known_.contains(who.user);
    const auto digits = codes_.opened_by(who.user, ticket.bytes(), code.bytes(), weir::now());
    if (!digits || !known) return {};
    return limits_.first_use(*digits);
}

std::optional<visitor> routes::visitor_of(const request& from, response& to) const
{
    const auto seen   = weir::view(from);
    const auto sent   = value_of(from, "user", longest_name);
    const auto client = source_(seen);
    const auto no     = [&](int status, std::string_view name) {
        if (wants_page(from)) html(to, status, ask_for_name("This is no e-mail address."));
        else error(to, status, name);
        return std::nullopt;
    };
    if (weir::step_for(sent, if_missing) != weir::key_step::count) return no(400, "user_missing");
    if (weir::step_for(client, if_missing) != weir::key_step::count)
        return no(400, "address_missing");

    visitor who{.user = limits_.name_of(sent.bytes()), .client = client};
    if (!can_be_account(who.user)) return no(422, "invalid_user");
    who.device = devices_.known(who.user, cookie_(seen).bytes());
    return who;
}

void routes::refuse(const request& from, response& to, const weir::decision& refused) const
{
    weir::refuse(from, to, refused, {.body = weir::refusal_body::minimal});
    if (!wants_page(from)) return;
    const bool away = refused.basis == weir::basis::store_unavailable;
    html(to, to.status, away ? unavailable() : too_many(weir::now(), refused.retry_after));
}

void routes::admit(const visitor& who, const request& from, response& to) const
{
    const auto lifetime = std::chrono::floor<seconds>(devices_.lifetime()).count();
    to.set_header(
        "Set-Cookie",
        std::string(cookie_.name()) + "=" + devices_.issue(who.user, who.device) +
            "; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=" + std::to_string(lifetime));
    if (wants_page(from)) return html(to, 200, welcome(who.user));
    std::string body = R"({"signed_in":)";
    weir::append_json_string(body, who.user);
    json(to, 200, body + "}");
}

void routes::locked(const request&, response& to)
{
    const auto all = limits_.locked();
    if (!all) return error(to, 503, "unavailable");
    std::string body = R"({"locked":[)";
    for (const auto& one : *all) {
        if (&one != &all->front()) body += ',';
        body.append(R"({"limit":")").append(one.limit).append(R"(","key":")");
        body.append(key_text(one.who)).append(R"(","tier":)").append(std::to_string(one.tier));
        body.append(R"(,"level":)").append(std::to_string(one.level)).append(R"(,"until":")");
        body.append(instant_text(one.until)).append("\"}");
    }
    json(to, 200, body + "]}");
}

void routes::clear(const request& from, response& to)
{
    const auto key     = value_of(from, "key", 32);
    const auto name    = value_of(from, "user", longest_name);
    const auto address = weir::address::parse(value_of(from, "address", 64).bytes());
    const auto user    = limits_.name_of(name.bytes());
    const auto who     = key_from(key.bytes());
    const auto client  = address ? weir::client(*address, prefix_) : weir::client();

    bool done = false;
    if (key && !who) return error(to, 422, "invalid_key");
    if (from.has_param("address") && !address) return error(to, 422, "invalid_address");
    if (who) done = limits_.clear(*who);
    else if (name && address) done = limits_.clear_pair(user, client);
    else if (name) done = limits_.clear_user(user);
    else if (address) done = limits_.clear_address(client);
    else return error(to, 400, "nothing_named");
    if (!done) return error(to, 503, "unavailable");
    json(to, 200, R"({"cleared":true})");
}

}  // namespace signin
