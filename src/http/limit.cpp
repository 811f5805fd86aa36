// SPDX-License-Identifier: BSL-1.0

#include "weir/http/limit.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <utility>

#include "weir/invalid.hpp"

namespace weir::http {

namespace {

/// The shortest decimal that is the number: 50.5, and 11 without a point.
std::string decimal(double number)
{
    std::array<char, 64> text{};
    const auto           end =
        std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed).ptr;
    return {text.data(), end};
}

constexpr std::uint32_t override_places = 1024;  // one key's requests in progress

}  // namespace

/// Borrows from the visit, and from itself: it stays where it is made.
class limit::sample {
public:
    sample(const limit& of, const visit& who) : tag_(of.options_.tag), client_(&who.client)
    {
        if (tag_ == limit_tag::location) first_ = who.location;
        else if (tag_ == limit_tag::ip || tag_ == limit_tag::ip_ja4) count_address(of, who);
        else count_value(of, who);
    }
    sample(const sample&)            = delete;
    sample& operator=(const sample&) = delete;

    [[nodiscard]] key_step         step() const noexcept { return step_; }
    [[nodiscard]] std::string_view bytes() const noexcept { return first_; }
    [[nodiscard]] subject          who() const noexcept
    {
        return {first_, std::span(second_).first(parts_ - 1)};
    }
    [[nodiscard]] std::optional<absence> why() const noexcept { return value_.why(); }

    /// The IPv6 client whose tiers count, or null.
    [[nodiscard]] const weir::client* wider() const noexcept
    {
        const auto& address = client_->address();
        return tag_ == limit_tag::ip && address && !address->is_v4() ? client_ : nullptr;
    }

    /// For people to read.
    [[nodiscard]] std::string text() const
    {
        if (tag_ != limit_tag::ip && tag_ != limit_tag::ip_ja4) return std::string(first_);
        const auto address = *client_ ? to_string(*client_) : std::string();
        return parts_ == 1 ? address : address + ' ' + std::string(second_[0]);
    }

private:
    /// All clients without an address share a count, whatever missing_key says: it is about what a
    /// client may leave out.
    void count_address(const limit& of, const visit& who)
    {
        const auto& address = who.client.address();
        if (address && !address->is_v4() && who.client.prefix() != of.options_.ipv6_prefix)
            client_ = &masked_.emplace(*address, of.options_.ipv6_prefix, who.client.degraded());
        first_ = client_->bytes();
        if (tag_ != limit_tag::ip_ja4 || who.ja4.empty()) return;
        second_[0] = who.ja4;
        parts_     = 2;
    }

    void count_value(const limit& of, const visit& who)
    {
        if (const auto* header = std::get_if<weir::header>(&of.key_)) value_ = (*header)(who.from);
        else if (const auto* cookie = std::get_if<weir::cookie>(&of.key_))
            value_ = (*cookie)(who.from);
        else if (const auto* query = std::get_if<weir::query>(&of.key_))
            value_ = (*query)(who.from);
        else value_ = field(who.ja4, longest_fingerprint);
        first_ = value_.bytes();
        step_  = step_for(value_, of.options_.missing_key);
    }

    static constexpr std::size_t longest_fingerprint = 256;

    limit_tag                       tag_;
    key_step                        step_ = key_step::count;
    field                           value_;
    const weir::client*             client_;
    std::optional<weir::client>     masked_;  // if the limit has a prefix of its own
    std::string_view                first_;
    std::array<std::string_view, 1> second_;
    std::size_t                     parts_ = 1;
};

limit::limit(limit_options options, counters& where, shadow_log* log)
    : options_(std::move(options)), name_(std::make_shared<const std::string>(options_.name)),
      log_(log)
{
    check(options_);
    switch (options_.tag) {
    case limit_tag::header:
        key_.emplace<header>(options_.key);
        break;
    case limit_tag::cookie:
        key_.emplace<cookie>(options_.key);
        break;
    case limit_tag::query:
        key_.emplace<query>(options_.key);
        break;
    case limit_tag::ip:
    case limit_tag::ja4:
    case limit_tag::ip_ja4:
    case limit_tag::location:
        break;
    }
    read_allow();
    auto maxima = read_overrides();
    if (options_.type == limit_type::inflight) make_places(where, maxima);
    else rate_ = where.limiter(plan(std::move(maxima)), options_.store);
}

limit::~limit() = default;

void limit::read_allow()
{
    for (const auto& text : options_.allow) {
        const auto range = cidr::parse(text);
        if (!range)
            weir::detail::invalid("limit \"" + options_.name + "\": allow has \"" + text +
                                  "\", which is no address or CIDR range");
        allow_.push_back(*range);
    }
}

/// What is counted of a request that has this value.
std::string limit::override_key(const std::string& text) const
{
    if (options_.tag != limit_tag::ip) return text;
    const auto range = cidr::parse(text);
    const auto whole = range && (range->prefix() == range->network().width() ||
                                 range->prefix() == options_.ipv6_prefix);
    if (!whole || (range->network().is_v4() && range->prefix() != range->network().width()))
        weir::detail::invalid("limit \"" + options_.name + "\": overrides have \"" + text +
                              "\"; with tag ip an address, or an IPv6 range of the prefix that is "
                              "counted by, is allowed");
    return std::string(weir::client(range->network(), options_.ipv6_prefix).bytes());
}

std::vector<std::uint64_t> limit::read_overrides()
{
    std::vector<std::uint64_t> maxima{*options_.max};
    for (const auto& [text, max] : options_.overrides) {
        if (!overrides_.try_emplace(override_key(text), maxima.size()).second)
            weir::detail::invalid("limit \"" + options_.name + "\": overrides name what \"" + text +
                                  "\" counts as twice");
        maxima.push_back(max);
    }
    return maxima;
}

rate_plan limit::plan(std::vector<std::uint64_t> maxima) const
{
    return {.name      = options_.name,
            .policy    = options_.policy,
            .window    = options_.interval,
            .burst     = options_.burst,
            .maxima    = std::move(maxima),
            .tiers     = options_.tiers,
            .on_outage = options_.on_outage};
}

void limit::make_places(counters& where, const std::vector<std::uint64_t>& maxima)
{
    for (const auto max : maxima) most_.push_back(static_cast<std::uint32_t>(max));
    places_.push_back(where.places(options_.name, most_[0], where.options().max_inflight));
    std::size_t index = 1;
    for (const auto& [text, unused] : options_.overrides)
        places_.push_back(
            where.places(options_.name + '\n' + text, most_[index++], override_places));
}

bool limit::answers_later() const noexcept { return rate_ && rate_->answers_later(); }

std::size_t limit::bytes() const
{
    if (rate_) return rate_->bytes();
    std::size_t all = 0;
    for (const auto& one : places_) all += one->bytes();
    return all;
}

bool limit::allows(const visit& who) const noexcept
{
    const auto& address = who.client.address();
    return !allow_.empty() && address &&
           std::ranges::any_of(allow_, [&](const auto& range) { return range.contains(*address); });
}

std::size_t limit::max_of(const sample& by) const noexcept
{
    if (overrides_.empty()) return 0;
    const auto found = overrides_.find(by.bytes());
    return found == overrides_.end() ? 0 : found->second;
}

std::optional<answer> limit::admit(const visit& who, passage& through, instant at) const
{
    if (allows(who)) return std::nullopt;
    const sample by(*this, who);
    if (by.step() == key_step::pass) return std::nullopt;
    if (by.step() == key_step::reject) return reject(who, by, at);
    if (!rate_) return enter(who, through, by, at);
    const auto subject = by.who();
    return conclude(who, through,
                    rate_->admit({.who = subject, .max = max_of(by), .wider = by.wider()}, at), at);
}

void limit::admit_then(const visit& who, passage& through, told done) const
{
    if (!answers_later() || allows(who)) return done(admit(who, through, now()));
    const sample by(*this, who);
    if (by.step() != key_step::count) return done(admit(who, through, now()));
    const auto subject = by.who();
    rate_->admit_then(
        {.who = subject, .max = max_of(by), .wider = by.wider()},
        [this, &who, &through, done = std::move(done)](const any_limiter::told& said) {
            done(conclude(who, through, said, now()));
        });
}

/// Another max is told to the places when they are entered, so that a configuration which is only
/// read changes nothing.
std::optional<answer> limit::enter(const visit& who, passage& through, const sample& by,
                                   instant at) const
{
    const auto  which = max_of(by);
    const auto  max   = most_[which];
    const auto& place = places_[which];
    if (const auto now = place->limits(); now.per_key != max)
        place->set_limits({.per_key = max, .in_total = now.in_total});

    auto       held = place->enter(by.who());
    auto       made = held.decision();
    const bool full = held.bound() == inflight_bound::in_total && !held;
    const auto most = full ? made.limit : std::uint64_t{max};
    made.limit      = most;
    made.left       = std::min(made.left, most);
    any_limiter::told said{
        .made = made, .count = static_cast<double>(most) + 1, .max = most, .name = &name_};
    said.made.limiter  = *name_;
    said.refused_by[0] = *name_;
    said.refused       = made ? 0 : 1;
    if (held) through.keep(place, std::move(held));
    return conclude(who, through, said, at);
}

std::optional<answer> limit::conclude(const visit& who, passage& through,
                                      const any_limiter::told& said, instant at) const
{
    const bool counts = options_.headers && said.made.basis < basis::store_unavailable;
    auto       left   = counts ? std::optional(budget_of(said)) : std::nullopt;
    if (!said.made) return refuse(who, through, said, std::move(left), at);
    if (left) through.quota().admitted(*left);
    return std::nullopt;
}

std::optional<answer> limit::refuse(const visit& who, passage& through,
                                    const any_limiter::told& said, std::optional<budget> left,
                                    instant at) const
{
    auto given = answer_of(said);
    if (options_.dry_run) {
        const sample by(*this, who);
        shadow(who, given.status, over_text(said), by.text(), at);
        return std::nullopt;
    }
    through.quota().refused(std::move(left));
    return given;
}

std::optional<answer> limit::reject(const visit& who, const sample& by, instant at) const
{
    const auto  why  = by.why().value_or(absence::missing);
    std::string body = "Plugin limit, " + key_text() + " is ";
    body += why == absence::missing    ? "required"
            : why == absence::too_long ? "too long"
                                       : name(why);
    if (options_.dry_run) return shadow(who, 400, body, {}, at), std::nullopt;
    return answer{
        .status = 400,
        .fields = {{"Content-Type", "text/plain; charset=utf-8"}, {"Cache-Control", "no-store"}},
        .body   = std::move(body)};
}

void limit::shadow(const visit& who, int status, std::string_view reason, std::string_view matched,
                   instant at) const
{
    if (log_ != nullptr)
        log_->would_refuse(who, {.status = status, .reason = reason, .matched = matched}, at);
}

/// What a refusal says, unless its body has a form of its own.
std::string limit::over_text(const any_limiter::told& said) const
{
    if (options_.message && !options_.message->empty()) return *options_.message;
    if (said.made.basis >= basis::store_unavailable) return "Temporarily unavailable.";
    return "Plugin limit, exceed limit " + decimal(said.count) + '/' +
           std::to_string(said.made.limit);
}

answer limit::answer_of(const any_limiter::told& said) const
{
    auto made = said.made;
    if (made.retry_after && options_.retry_after == told_wait::interval)
        made.retry_after = options_.interval;
    if (options_.retry_after == told_wait::none) made.retry_after = std::nullopt;
    const bool counted = made.basis < basis::store_unavailable;
    const auto text    = options_.body == refusal_body::text && counted
                             ? over_text(said)
                             : options_.message.value_or(std::string());

    const refusal refused(made, {.body     = options_.body,
                                 .status   = options_.status,
                                 .message  = text,
                                 .violated = std::span(said.refused_by).first(said.refused)});
    const auto    fields = refused.headers();
    return {.status = refused.status(),
            .fields = {fields.begin(), fields.end()},
            .body   = refused.body()};
}

budget limit::budget_of(const any_limiter::told& said) const
{
    const auto& made = said.made;
    const bool  rate = options_.type == limit_type::rate;
    return {.name   = said.name != nullptr ? *said.name : name_,
            .limit  = made.limit,
            .left   = made ? made.left : 0,
            .quota  = said.max,
            .window = rate ? options_.interval : duration::zero(),
            .reset  = rate ? std::optional(made.reset_after) : std::nullopt,
            .form   = options_.quota};
}

std::string limit::key_text() const
{
    switch (options_.tag) {
    case limit_tag::header:
        return "the header " + options_.key;
    case limit_tag::cookie:
        return "the cookie " + options_.key;
    case limit_tag::query:
        return "the query parameter " + options_.key;
    case limit_tag::ip:
        return "a client address";
    case limit_tag::location:
        return "a location";
    case limit_tag::ja4:
    case limit_tag::ip_ja4:
        break;
    }
    return "a TLS connection with a JA4 fingerprint";
}

}  // namespace weir::http
