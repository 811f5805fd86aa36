// SPDX-License-Identifier: BSL-1.0

// POST /f/{id}. The order is a promise: the source is charged before the endpoint is looked up, the
// endpoint before the body is parsed, and a refused source never touches an endpoint's budget.

#include "body/fields.hpp"
#include "routes.hpp"

#include "weir/adapt/beast.hpp"
#include "weir/http/refusal.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace forms {

namespace asio = boost::asio;

namespace {

constexpr auto idempotency_header = "Idempotency-Key";

response refused(const request& from, const weir::decision& decision)
{
    if (decision.basis == weir::basis::store_unavailable) return storage_unavailable();
    return weir::refuse(from, decision, {.body = weir::refusal_body::envelope});
}

/// 16 to 255 printable ASCII characters without spaces.
bool is_idempotency_key(std::string_view key)
{
    return key.size() >= 16 && key.size() <= 255 &&
           std::ranges::all_of(key, [](char c) { return c > ' ' && c < 0x7f; });
}

/// Throws body_problem for a header that is there and wrong, an empty or a second one too.
std::optional<std::string> idempotency_key(const request& from)
{
    const auto [first, end] = from.equal_range(idempotency_header);
    if (first == end) return std::nullopt;
    const auto key = plain(first->value());
    if (std::next(first) != end || !is_idempotency_key(key))
        throw body_problem{400, "invalid_idempotency_key",
                           "An Idempotency-Key is 16 to 255 printable ASCII characters without "
                           "spaces."};
    return std::string(key);
}

submission read_submission(const request& from, std::string_view id, weir::instant at)
{
    auto       key    = idempotency_key(from);
    const auto fields = read_fields(plain(from[http::field::content_type]),
                                    plain(from[http::field::content_encoding]), from.body());
    return {.id              = new_submission_id(at),
            .endpoint_id     = std::string(id),
            .received_at     = timestamp(at),
            .fields          = as_pairs(fields),
            .field_count     = std::ssize(fields),
            .idempotency_key = std::move(key)};
}

response accepted(const submission& kept, bool replayed)
{
    std::string body = R"({"submission_id":)";
    weir::append_json_string(body, kept.id);
    body += R"(,"endpoint_id":)";
    weir::append_json_string(body, kept.endpoint_id);
    body += R"(,"received_at":)";
    weir::append_json_string(body, kept.received_at);
    body.append(R"(,"field_count":)").append(std::to_string(kept.field_count));
    body.append(R"(,"idempotent_replay":)").append(replayed ? "true" : "false");
    // Every submission queues one delivery when it is kept, so of a replay this is true as well.
    return json_answer(http::status::accepted, body + R"(,"delivery":{"queued":true}})");
}

/// Resumes after the commit: what is answered with 202 is on the disk.
asio::awaitable<response> store(service& with, submission given)
{
    keeping one{.given = std::move(given)};
    if (!co_await kept_by(with.keeper, one)) co_return storage_unavailable();
    if (one.outcome == receipt::conflicting)
        co_return failure(http::status::conflict, "idempotency_conflict",
                          "This Idempotency-Key was used for other content.");
    if (one.outcome == receipt::stored) with.on_kept();
    co_return accepted(one.given, one.outcome == receipt::replayed);
}

/// What is kept of a request that both limits let through, or the response to one whose body says
/// nothing.
std::variant<submission, response> read(const request& from, std::string_view id, weir::instant at)
{
    try {
        return read_submission(from, id, at);
    } catch (const body_problem& why) {
        return failure(static_cast<http::status>(why.status), why.code, why.message);
    }
}

}  // namespace

asio::awaitable<response> submit(service& with, const request& from, const weir::peer& remote,
                                 std::string_view id)
{
    auto&          limits  = *with.limits;
    const bool     limited = with.chosen.limited;
    const auto     at      = limits.now();  // one request, one instant for both windows
    auto           charged = at;
    weir::decision made;
    if (limited) {
        const auto who = with.source(weir::view(from, remote));
        if (limits.waits()) made = co_await limits.source_later(who, at);
        else made = limits.source(who, at);
        if (!made) co_return refused(from, made);
    }
    if (!is_endpoint_id(id)) co_return invalid_endpoint_id(http::status::not_found);
    const auto active = with.endpoints.active(id);
    if (!active) co_return unknown_endpoint();
    if (limited) {
        if (limits.waits()) made = co_await limits.endpoint_later(id, at);
        else made = limits.endpoint(id, at);
        if (!made) co_return refused(from, made);
        charged = made.at;  // by the clock of the counters, which many hosts may share
    }
    if (!*active) co_return inactive_endpoint();

    auto found = read(from, id, charged);
    if (auto* const wrong = std::get_if<response>(&found)) co_return std::move(*wrong);
    co_return co_await store(with, std::move(std::get<submission>(found)));
}

}  // namespace forms
