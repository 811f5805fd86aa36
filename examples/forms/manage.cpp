// SPDX-License-Identifier: BSL-1.0

// The management routes. No limit applies to them: nobody who floods the forms locks their operator
// out. The token is asked for before anything else, so that without it nothing can be found out.

#include "body/media_type.hpp"
#include "routes.hpp"
#include "submission_json.hpp"

#include "weir/http/refusal.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

namespace forms {

namespace asio = boost::asio;

namespace {

using nlohmann::json;

constexpr std::size_t most_on_a_page = 1000;

/// A response instead of a result.
struct rejected {
    response with;
};

[[noreturn]] void reject(http::status status, std::string_view code, std::string_view message)
{
    throw rejected{failure(status, code, message)};
}

/// Takes the same time for every text of one length, wherever it first differs. volatile, or a
/// compiler may stop at the first difference.
bool same_secret(std::string_view given, std::string_view expected) noexcept
{
    volatile unsigned char difference = given.size() == expected.size() ? 0 : 1;
    for (std::size_t i = 0; i < given.size(); ++i) {
        const auto a = static_cast<unsigned char>(given[i]);
        const auto b = static_cast<unsigned char>(expected[i % expected.size()]);
        difference   = static_cast<unsigned char>(difference | (a ^ b));
    }
    return difference == 0;
}

/// `Bearer <token>`, the scheme in either case (RFC 9110, section 11.1).
bool is_operator(const request& from, std::string_view token)
{
    constexpr std::size_t scheme = 7;
    const auto            given  = plain(from[http::field::authorization]);
    return given.size() > scheme && lower_case(given.substr(0, scheme)) == "bearer " &&
           same_secret(trimmed(given.substr(scheme)), token);
}

response unauthorized()
{
    auto made = failure(http::status::unauthorized, "unauthorized",
                        "Send Authorization: Bearer and the token of the operator.");
    made.set(http::field::www_authenticate, "Bearer");
    return made;
}

/// The first of this name; ids and numbers need no percent-decoding.
std::string_view query_value(std::string_view query, std::string_view name)
{
    while (!query.empty()) {
        const auto pair = query.substr(0, query.find('&'));
        query.remove_prefix(std::min(pair.size() + 1, query.size()));
        const auto equals = std::min(pair.find('='), pair.size());
        if (pair.substr(0, equals) == name) return pair.substr(std::min(equals + 1, pair.size()));
    }
    return {};
}

std::size_t page_size(std::string_view query)
{
    const auto text = query_value(query, "limit");
    if (text.empty()) return 100;
    std::size_t size = 0;
    const auto  read = std::from_chars(text.data(), text.data() + text.size(), size);
    if (read.ec != std::errc{} || read.ptr != text.data() + text.size() || size < 1 ||
        size > most_on_a_page)
        reject(http::status::unprocessable_entity, "invalid_limit", "limit is 1 to 1000.");
    return size;
}

/// The body as an object that has none but these members.
json read_object(const request& from, std::initializer_list<std::string_view> members)
{
    auto object = json::parse(from.body(), nullptr, false);
    if (!object.is_object())
        reject(http::status::bad_request, "malformed_body", "The body is not a JSON object.");
    for (const auto& [name, value] : object.items())
        if (std::ranges::find(members, name) == members.end())
            reject(http::status::unprocessable_entity, "unknown_member",
                   "The body has a member that is not known here.");
    return object;
}

bool read_active(const json& object, std::optional<bool> otherwise)
{
    const auto found = object.find("active");
    if (found == object.end() && otherwise) return *otherwise;
    if (found == object.end() || !found->is_boolean())
        reject(http::status::unprocessable_entity, "invalid_active", "active is true or false.");
    return found->get<bool>();
}

std::string read_id(const json& object)
{
    const auto found = object.find("id");
    if (found == object.end() || !found->is_string() || !is_endpoint_id(found->get<std::string>()))
        throw rejected{invalid_endpoint_id(http::status::unprocessable_entity)};
    return found->get<std::string>();
}

void append_endpoint(std::string& to, const endpoint& one)
{
    to += R"({"id":)";
    weir::append_json_string(to, one.id);
    to.append(R"(,"active":)").append(one.active ? "true" : "false").append(R"(,"created_at":)");
    weir::append_json_string(to, one.made_at);
    to += '}';
}

response shown(http::status status, const std::optional<endpoint>& one)
{
    if (!one) return unknown_endpoint();
    std::string body;
    append_endpoint(body, *one);
    return json_answer(status, std::move(body));
}

asio::awaitable<response> create(service& with, const request& from)
{
    const auto     object = read_object(from, {"id", "active"});
    const endpoint made{.id      = read_id(object),
                        .active  = read_active(object, true),
                        .made_at = timestamp(weir::now())};
    bool       is_new = false;
    const bool kept   = co_await done_by(with.desk, [&](records& on) {
        is_new = on.create_endpoint(made);
        with.endpoints.refresh(on);
    });
    if (!kept) co_return storage_unavailable();
    if (!is_new)
        co_return failure(http::status::conflict, "endpoint_exists", "There is one with this id.");
    co_return shown(http::status::created, made);
}

asio::awaitable<response> change(service& with, const request& from, std::string_view id)
{
    if (!with.endpoints.active(id)) co_return unknown_endpoint();
    const bool active = read_active(read_object(from, {"active"}), std::nullopt);
    // With what became of it, before the answer: a submission that comes after it finds the change.
    const bool kept = co_await done_by(with.desk, [&](records& on) {
        on.change_endpoint(id, active);
        with.endpoints.refresh(on);
    });
    if (!kept) co_return storage_unavailable();
    co_return shown(http::status::ok, with.endpoints.find(id));
}

response list_endpoints(const service& with, std::string_view query)
{
    const auto size  = page_size(query);
    const auto found = with.endpoints.list(query_value(query, "after"), size + 1);
    const auto last  = std::min(size, found.size());

    std::string body = R"({"endpoints":[)";
    for (std::size_t i = 0; i < last; ++i) {
        if (i > 0) body += ',';
        append_endpoint(body, found[i]);
    }
    body += R"(],"next":)";
    if (found.size() > size) weir::append_json_string(body, found[last - 1].id);
    else body += "null";
    return json_answer(http::status::ok, body + "}");
}

std::string submissions_body(const page& of)
{
    std::string body = R"({"submissions":[)";
    for (const auto& each : of.found) {
        if (body.back() == '}') body += ',';
        append_submission(body, each);
    }
    body += R"(],"next":)";
    if (of.more) weir::append_json_string(body, of.found.back().id);
    else body += "null";
    return body + "}";
}

asio::awaitable<response> list_submissions(service& with, std::string_view id,
                                           std::string_view query)
{
    if (!with.endpoints.active(id)) co_return unknown_endpoint();
    const auto size  = static_cast<std::int64_t>(page_size(query));
    const auto after = query_value(query, "after");

    std::optional<std::string> body;
    const bool read = co_await done_by(with.desk, [&](records& on) {
        // Made here too: a thousand submissions are megabytes, and others wait on our own thread.
        if (const auto found = on.submissions_of(id, after, size)) body = submissions_body(*found);
    });
    if (!read) co_return storage_unavailable();
    if (!body)
        co_return failure(http::status::unprocessable_entity, "invalid_after",
                          "after is no submission of this endpoint.");
    co_return json_answer(http::status::ok, std::move(*body));
}

bool reads(const request& from)
{
    return from.method() == http::verb::get || from.method() == http::verb::head;
}

asio::awaitable<response> manage_endpoints(service& with, const request& from,
                                           std::string_view query)
{
    if (reads(from)) co_return list_endpoints(with, query);
    if (from.method() == http::verb::post) co_return co_await create(with, from);
    co_return wrong_method("GET, HEAD, POST");
}

asio::awaitable<response> manage_endpoint(service& with, const request& from, std::string_view id)
{
    if (reads(from)) co_return shown(http::status::ok, with.endpoints.find(id));
    if (from.method() == http::verb::patch) co_return co_await change(with, from, id);
    co_return wrong_method("GET, HEAD, PATCH");
}

asio::awaitable<response> managed(service& with, const request& from, std::string_view rest,
                                  std::string_view query)
{
    constexpr std::string_view root = "endpoints", below = "endpoints/";
    // The operator is told what is, and not what was a second ago: another process may just have
    // been told to make the endpoint.
    const auto refresh = [&](records& on) { with.endpoints.refresh(on); };
    if (!co_await done_by(with.desk, refresh)) co_return storage_unavailable();
    if (rest == root) co_return co_await manage_endpoints(with, from, query);
    if (rest.starts_with(below)) {
        rest.remove_prefix(below.size());
        const auto id   = rest.substr(0, rest.find('/'));
        const auto what = rest.substr(id.size());
        if (what.empty()) co_return co_await manage_endpoint(with, from, id);
        if (what == "/submissions" && reads(from))
            co_return co_await list_submissions(with, id, query);
        if (what == "/submissions") co_return wrong_method("GET, HEAD");
    }
    co_return failure(http::status::not_found, "not_found", "There is nothing here.");
}

}  // namespace

asio::awaitable<response> manage(service& with, const request& from, std::string_view rest,
                                 std::string_view query)
{
    if (!is_operator(from, with.chosen.admin_token)) co_return unauthorized();
    std::optional<response> rejection;
    try {
        co_return co_await managed(with, from, rest, query);
    } catch (rejected& why) {
        rejection = std::move(why.with);
    }
    co_return std::move(*rejection);
}

}  // namespace forms
