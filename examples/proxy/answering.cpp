// SPDX-License-Identifier: BSL-1.0

// Who answers a request: a plugin, the cache, the upstream, or nobody. And how an answer goes out.

#include "pages.hpp"
#include "session.hpp"
#include "status.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>

namespace proxy {

namespace {

constexpr auto one_record = std::size_t{16'384};  // of TLS, at most

/// Of three buffers, the front that was written is taken off.
void advance(std::array<asio::const_buffer, 3>& left, std::size_t count) noexcept
{
    for (auto& one : left) {
        const auto taken = std::min(count, one.size());
        one += taken;
        count -= taken;
    }
}

asio::const_buffer buffer_of(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

// ----------------------------------------------------------------------------------- deciding

void session::begin()
{
    site_ = lane_.current;
    if (what_for_.status_page) return show_status();
    lane_.figures.requests.add(1);
    if (site_->log) began_ = std::chrono::steady_clock::now();
    view_.emplace(
        std::span<const weir::header_line>(request_.lines),
        weir::request_facts{.peer = remote_, .method = request_.method, .target = request_.target});
    client_ = site_->source(*view_);
    server_ = site_->at(what_for_.addr);
    place_  = server_ != nullptr ? server_->find(request_.target) : nullptr;
    if (request_.method == "CONNECT") return fail(405);
    if (place_ == nullptr) return fail(404);
    visit_.emplace(weir::http::visit{
        .from = *view_, .client = client_, .location = place_->chosen.name, .ja4 = fingerprint()});
    ask(place_->arrival, &session::arrived);
}

/// The client's of a proxy of ours, which is asked and nobody else, or that of this connection.
std::string_view session::fingerprint() const
{
    if (!server_->ja4_told || !site_->trusts(remote_)) return ja4_;
    return server_->ja4_told(*view_);
}

/// A shared store may answer on a thread of its own, which only posts: this session is let go on
/// its lane's thread and nowhere else.
void session::ask(const filter_chain& who, told then)
{
    if (who.empty()) return (this->*then)(std::nullopt);
    asked_ = true;
    if (!who.answers_later()) {
        auto made = who.admit(*visit_, passage_, weir::now());
        count_permits();
        return (this->*then)(std::move(made));
    }
    phase_    = phase::filters;
    deadline_ = steady_time::max();  // the store has one of its own
    asking_   = shared_from_this();
    if (request_body_.done()) read_client();
    who.admit_then(*visit_, passage_, [this, then](std::optional<weir::http::answer> made) {
        asio::dispatch(lane_.context, [this, then, made = std::move(made)]() mutable {
            const auto self = std::move(asking_);
            if (phase_ == phase::closed) return leave();
            count_permits();
            (this->*then)(std::move(made));
        });
    });
}

void session::arrived(std::optional<weir::http::answer> made)
{
    if (made) {
        lane_.figures.answered.add(1);
        return respond(made->status, made->fields, std::move(made->body));
    }
    use_cache_ = place_->chosen.cache && may_use_cache(request_);
    if (use_cache_) {
        key_  = cache_key(place_->chosen.name, request_, tls_ != nullptr);
        kept_ = lane_.lasting.cache.find(key_, weir::now());
        if (kept_) return serve_kept();
    }
    ask(place_->onward, &session::onward);
}

void session::onward(std::optional<weir::http::answer> made)
{
    if (!made) return go_upstream();
    lane_.figures.answered.add(1);
    respond(made->status, made->fields, std::move(made->body));
}

// ---------------------------------------------------------------------------------- answering

response_context session::context(fields added) const
{
    return {.way        = way_,
            .keep_alive = keep_,
            .minor      = request_.minor,
            .via        = site_->chosen.basic.via,
            .date       = lane_.date,
            .added      = added};
}

/// For every response of this exchange, whoever makes it.
std::vector<weir::refusal_header> session::quota_fields() const
{
    if (!passage_.quota().told()) return {};
    return passage_.quota().fields();
}

/// The rest of a body that nobody wants is taken if it has come already; else the connection ends.
void session::respond(int status, fields own, std::string body)
{
    drop_link();
    phase_ = phase::answering;
    if (!request_body_.done()) {
        body_at_ += request_body_.feed({in_.get() + body_at_, in_end_ - body_at_});
        keep_ = keep_ && request_body_.done();
    }
    if (keep_) read_client();
    const auto quota = quota_fields();
    page_            = std::move(body);
    out_.clear();
    write_own(out_, status, own, page_.size(), context(quota));
    const bool bare  = request_.method == "HEAD";
    content_         = bare ? 0 : page_.size();
    response_.status = status;
    leave();
    send(out_, bare ? std::string_view() : page_, {}, &session::finish);
}

void session::fail(int status)
{
    const auto page = error_page(status);
    respond(status, page.fields, page.body);
}

void session::show_status()
{
    if (request_.method != "GET" && request_.method != "HEAD") return fail(405);
    const std::array<weir::refusal_header, 2> own = {
        {{"Content-Type", "application/json"}, {"Cache-Control", "no-store"}}};
    respond(200, own, status_page(lane_.lasting, *site_));
}

void session::serve_kept()
{
    lane_.figures.cache_hits.add(1);
    phase_ = phase::answering;
    read_client();
    const auto quota = quota_fields();
    const auto age   = std::chrono::duration_cast<seconds>(weir::now() - kept_->born).count();
    out_             = kept_->head;
    write_rest_of_kept(out_, kept_->body.size(), age, context(quota));
    const bool bare  = request_.method == "HEAD";
    content_         = bare ? 0 : kept_->body.size();
    response_.status = 200;
    leave();
    send(out_, bare ? std::string_view() : kept_->body, {}, &session::finish);
}

/// The bytes stay until `then` is called. What a socket takes at once it is given at once.
void session::send(std::string_view head, std::string_view data, std::string_view tail, step then)
{
    left_ = {buffer_of(head), buffer_of(data), buffer_of(tail)};
    then_ = then;
    if (!tls_) {
        error_code failed;
        const auto count = socket_.write_some(left_, failed);
        if (failed && failed != asio::error::would_block) return abandon();
        advance(left_, count);
        if (asio::buffer_size(left_) == 0) return (this->*then)();
    } else if (head.data() == out_.data() && data.size() + tail.size() <= one_record) {
        out_.append(data).append(tail);  // one record instead of three
        left_ = {buffer_of(out_)};
    }
    send_rest();
}

void session::send_rest()
{
    writing_ = true;
    allow(site_->chosen.basic.write_timeout);
    auto done = [self = shared_from_this()](const error_code& failed, std::size_t count) {
        self->writing_ = false;
        if (self->phase_ == phase::closed) return;
        if (failed) return self->abandon();
        advance(self->left_, count);
        if (asio::buffer_size(self->left_) > 0) return self->send_rest();
        (self.get()->*self->then_)();
    };
    if (tls_) tls_->async_write_some(left_, std::move(done));
    else socket_.async_write_some(left_, std::move(done));
}

}  // namespace proxy
