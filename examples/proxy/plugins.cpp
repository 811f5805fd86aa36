// SPDX-License-Identifier: BSL-1.0

#include "plugins.hpp"

#include "weir/config/duration.hpp"
#include "weir/config/limits.hpp"
#include "weir/http/restriction.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace proxy {

namespace http = weir::http;
using weir::config::table;

namespace {

/// `10 in 10s by ip, sliding on memory` and what else is unusual.
std::string about(const http::limit_options& of)
{
    std::string text = std::to_string(of.max.value_or(0));
    if (of.type == http::limit_type::inflight) text += " at once";
    else text += " in " + weir::config::duration_text(of.interval);
    text.append(" by ").append(name(of.tag));
    if (!of.key.empty()) text.append(" ").append(of.key);
    if (of.type == http::limit_type::rate)
        text.append(", ").append(name(of.policy)).append(" on ").append(of.store);
    if (of.step != http::limit_step::request) text.append(", before the upstream");
    if (of.dry_run) text += ", dry run";
    return text;
}

/// How far a sketch may be off, by the figures that it states of itself.
std::string sketch_error(const http::limit_options& of, const weir::sketch_size& size)
{
    if (of.type != http::limit_type::rate || of.store != "sketch") return "";
    std::string text = "; of " + std::to_string(size.depth) + " x " + std::to_string(size.width) +
                       " cells, keys counted too high by the number of keys in an interval:";
    for (const std::uint64_t keys : {300U, 1'000U, 3'000U, 10'000U}) {
        const auto permille = static_cast<int>(1000.0 * size.wrong_share(keys) + 0.5);
        text += " " + std::to_string(keys) + ": " + std::to_string(permille / 10) + "." +
                std::to_string(permille % 10) + " %";
    }
    return text;
}

template <class Options>
auto warning_of(const Options& of)
{
    return [of](const table& at, std::string_view server) {
        weir::config::warn_without_ja4(at, of, server);
    };
}

std::optional<plugin> read_limit(const table& from, state& lasting)
{
    auto options = weir::config::read_limit(from);
    if (!options) return std::nullopt;
    plugin made{.name  = options->name,
                .step  = options->step,
                .about = "limit: " + about(*options) +
                         sketch_error(*options, lasting.counters.options().sketch)};
    if (options->tag == http::limit_tag::ja4 || options->tag == http::limit_tag::ip_ja4)
        made.without_ja4 = warning_of(*options);
    auto* log = options->dry_run ? &lasting.shadow(made.name, "limit") : nullptr;
    auto  one = std::make_shared<const http::limit>(std::move(*options), lasting.counters, log);
    if (one->bytes() > 0) made.about += "; " + std::to_string(one->bytes()) + " bytes";
    made.use = std::move(one);
    return made;
}

/// A restriction of any kind, by its reader and its class.
template <class Restriction, class Options>
std::optional<plugin> read_restriction(const table& from, state& lasting,
                                       std::optional<Options> (*read)(const table&),
                                       const std::string& category)
{
    auto options = read(from);
    if (!options) return std::nullopt;
    plugin made{.name = std::string(from.name()), .about = category};
    if (options->dry_run) made.about += ", dry run";
    if constexpr (std::is_same_v<Options, http::ja4_restriction_options>)
        made.without_ja4 = warning_of(*options);
    auto* log = options->dry_run ? &lasting.shadow(made.name, category) : nullptr;
    made.use  = std::make_shared<const restriction>(
        [one = Restriction(std::move(*options), log)](const visit& who, weir::instant at) {
            return one.admit(who, at);
        });
    return made;
}

std::optional<plugin> read_plugin(const table& from, state& lasting)
{
    using namespace weir::config;
    const auto category = from.one_of("category", "",
                                      {"limit", "ip_restriction", "ua_restriction",
                                       "referer_restriction", "ja4_restriction", "uri_block"});
    if (category == "limit") return read_limit(from, lasting);
    if (category == "ip_restriction")
        return read_restriction<http::ip_restriction>(from, lasting, read_ip_restriction, category);
    if (category == "ua_restriction")
        return read_restriction<http::ua_restriction>(from, lasting, read_ua_restriction, category);
    if (category == "referer_restriction")
        return read_restriction<http::referer_restriction>(from, lasting, read_referer_restriction,
                                                           category);
    if (category == "ja4_restriction")
        return read_restriction<http::ja4_restriction>(from, lasting, read_ja4_restriction,
                                                       category);
    if (category == "uri_block")
        return read_restriction<http::uri_block>(from, lasting, read_uri_block, category);
    if (!from.has("category")) from.reject("category", "category is required");
    from.skip();
    return std::nullopt;
}

}  // namespace

std::vector<plugin> read_plugins(weir::config::document& from, state& lasting)
{
    std::vector<plugin> all;
    for (const auto& each : from.root().child("plugins").children()) try {
            if (auto made = read_plugin(each, lasting)) all.push_back(std::move(*made));
        } catch (const std::exception& failed) {
            each.reject("category", failed.what());
        }
    return all;
}

}  // namespace proxy
