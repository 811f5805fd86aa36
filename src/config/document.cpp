// SPDX-License-Identifier: BSL-1.0

#include "weir/config/document.hpp"

#include "node.hpp"
#include "weir/config/duration.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <iterator>
#include <utility>

namespace weir::config {
namespace {

/// The name of a type and, of a plain value, what is written: `string "100"`.
std::string described(const node& value)
{
    struct describe {
        std::string operator()(const std::string& s) const { return "string " + shown(s); }
        std::string operator()(std::int64_t n) const { return "integer " + std::to_string(n); }
        std::string operator()(bool b) const { return b ? "boolean true" : "boolean false"; }
        std::string operator()(const node::other& o) const { return "date or time " + o.text; }
        std::string operator()(const node::list&) const { return "array"; }
        std::string operator()(const node::fields&) const { return "table"; }
        std::string operator()(double d) const
        {
            std::array<char, 32> text;
            const auto           end = std::to_chars(text.data(), text.data() + text.size(), d).ptr;
            return "float " + std::string(text.data(), end);
        }
    };
    return std::visit(describe(), value.is);
}

std::string joined(std::string_view path, std::string_view key)
{
    std::string out(path);
    if (!out.empty()) out += '.';
    const auto bare = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '-';
    };
    if (!key.empty() && std::ranges::all_of(key, bare)) return out.append(key);
    return out += shown(key);
}

/// No byte of a finding is a control character, so that a log line stays one.
std::string printable(std::string text)
{
    for (auto& c : text)
        if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
    return text;
}

std::vector<finding> sorted(std::vector<finding> found)
{
    std::ranges::stable_sort(found, {},
                             [](const finding& one) { return std::pair(one.of_type, one.at); });
    return found;
}

std::string range_text(std::int64_t least, std::int64_t most)
{
    if (most == INT64_MAX) return "at least " + std::to_string(least);
    return std::to_string(least) + " to " + std::to_string(most);
}

void warn_of_strangers_in(const node& in, const std::string& path, parsed& whole)
{
    const auto* fields = std::get_if<node::fields>(&in.is);
    if (fields == nullptr || in.skipped) return;
    const std::vector<std::string_view> known(in.asked.begin(), in.asked.end());
    for (const auto& field : fields->of) {
        if (in.asked.contains(field.key)) {
            warn_of_strangers_in(field, joined(path, field.key), whole);
            if (const auto* list = std::get_if<node::list>(&field.is))
                for (const auto& element : *list)
                    warn_of_strangers_in(element, joined(path, field.key), whole);
            continue;
        }
        const auto  meant = nearest(field.key, known);
        std::string text  = "there is no key " + shown(field.key) + " here, so it has no effect";
        if (!meant.empty()) text.append("; did you mean ").append(meant).append("?");
        whole.add(whole.warnings, field.key_at, path, std::move(text));
    }
}

}  // namespace

const node* node::find(std::string_view wanted) const noexcept
{
    const auto* within = std::get_if<fields>(&is);
    if (within == nullptr) return nullptr;
    const auto found = std::ranges::find(within->of, wanted, &node::key);
    return found == within->of.end() ? nullptr : &*found;
}

void parsed::add(std::vector<finding>& to, place at, std::string table, std::string text) const
{
    to.push_back(
        {.file = name, .at = at, .table = std::move(table), .text = printable(std::move(text))});
}

document::document(std::unique_ptr<parsed> of) noexcept : of_(std::move(of)) {}
document::document(document&&) noexcept            = default;
document& document::operator=(document&&) noexcept = default;
document::~document()                              = default;

document document::parse(std::string_view text, std::string_view name)
{
    auto of  = std::make_unique<parsed>();
    of->name = printable(std::string(name));
    if (text.size() > most_bytes)
        of->add(of->errors, {}, "",
                "the file has more than " + std::to_string(most_bytes) + " bytes");
    else parse_toml(text, *of);
    return document(std::move(of));
}

document document::read(const std::string& file)
{
    std::ifstream stream(file, std::ios::binary);
    std::string   text(most_bytes + 1, '\0');
    stream.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
    if (stream.is_open() && !stream.bad() && (stream.eof() || stream.good()))
        return parse(text, file);

    document out = parse("", file);
    out.of_->add(out.of_->errors, {}, "", "the file cannot be read");
    return out;
}

table document::root() const { return table(*of_, &of_->root, "", "", {1, 1}); }
bool  document::ok() const noexcept { return of_->errors.empty(); }

std::vector<finding> document::errors() const { return sorted(of_->errors); }
std::vector<finding> document::warnings() const { return sorted(of_->warnings); }

void document::warn_of_strangers() { warn_of_strangers_in(of_->root, "", *of_); }

// ---- table

table::table(parsed& whole, const node* in, std::string name, std::string path, place fallback)
    : whole_(&whole), in_(in), name_(std::move(name)), path_(std::move(path)),
      at_(in != nullptr ? in->at : fallback)
{
}

const std::string& table::name() const noexcept { return name_; }
const std::string& table::path() const noexcept { return path_; }
bool               table::written() const noexcept { return in_ != nullptr; }

const node* table::find(std::string_view key) const
{
    if (in_ == nullptr) return nullptr;
    in_->asked.emplace(key);
    return in_->find(key);
}

bool table::has(std::string_view key) const { return find(key) != nullptr; }

place table::at(std::string_view key) const
{
    const auto* found = in_ != nullptr ? in_->find(key) : nullptr;
    return found != nullptr ? found->at : at_;
}

void table::wrong_type(std::string_view key, const node& is, std::string_view wanted) const
{
    whole_->add(whole_->errors, is.at, path_,
                std::string(key) + " must be " + std::string(wanted) + ", got " + described(is));
    whole_->errors.back().of_type = true;
}

std::optional<std::string> table::text(std::string_view key) const
{
    const auto* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (const auto* text = std::get_if<std::string>(&value->is)) return *text;
    wrong_type(key, *value, "a string");
    return std::nullopt;
}

std::string table::text(std::string_view key, std::string_view otherwise) const
{
    auto given = text(key);
    return given ? *std::move(given) : std::string(otherwise);
}

bool table::flag(std::string_view key, bool otherwise) const
{
    const auto* value = find(key);
    if (value == nullptr) return otherwise;
    if (const auto* flag = std::get_if<bool>(&value->is)) return *flag;
    wrong_type(key, *value, "true or false");
    return otherwise;
}

std::optional<std::int64_t> table::integer(std::string_view key) const
{
    const auto* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (const auto* number = std::get_if<std::int64_t>(&value->is)) return *number;
    wrong_type(key, *value, "an integer");
    return std::nullopt;
}

std::optional<std::int64_t> table::integer_in(std::string_view key, std::int64_t least,
                                              std::int64_t most) const
{
    const auto given = integer(key);
    if (!given || (*given >= least && *given <= most)) return given;
    reject(key, std::string(key) + " must be " + range_text(least, most) + ", got " +
                    std::to_string(*given));
    return std::nullopt;
}

weir::duration table::duration(std::string_view key, weir::duration otherwise, weir::duration least,
                               weir::duration most) const
{
    const auto given = text(key);
    if (!given) return otherwise;
    const auto read = parse_duration(*given);
    if (!read)
        reject(key, std::string(key) + " is " + shown(*given) + ", which " +
                        std::string(duration_fault(*given)) + "; allowed are " +
                        std::string(duration_grammar));
    else if (*read < least)
        reject(key, std::string(key) + " must be at least " + duration_text(least));
    else if (*read > most)
        reject(key, std::string(key) + " must be at most " + duration_text(most));
    else return *read;
    return otherwise;
}

std::string table::one_of(std::string_view key, std::string_view otherwise,
                          std::initializer_list<std::string_view> words) const
{
    auto given = text(key);
    if (!given) return std::string(otherwise);
    if (std::ranges::find(words, *given) != words.end()) return *std::move(given);
    std::string allowed;
    for (const auto word : words) allowed.append(allowed.empty() ? "" : ", ").append(word);
    reject(key, std::string(key) + " is " + shown(*given) + "; allowed is one of " + allowed);
    return std::string(otherwise);
}

std::vector<std::string> table::texts(std::string_view key) const
{
    const auto* value = find(key);
    if (value == nullptr) return {};
    const auto* list = std::get_if<node::list>(&value->is);
    if (list == nullptr) {
        wrong_type(key, *value, "an array of strings");
        return {};
    }
    std::vector<std::string> out;
    for (std::size_t i = 0; i < list->size(); ++i) {
        const auto& element = (*list)[i];
        if (const auto* text = std::get_if<std::string>(&element.is)) out.push_back(*text);
        else wrong_type(std::string(key) + "[" + std::to_string(i) + "]", element, "a string");
    }
    return out;
}

std::vector<std::string> table::ranges(std::string_view key) const
{
    std::vector<std::string> out;
    const auto               given = texts(key);
    for (std::size_t i = 0; i < given.size(); ++i) {
        const auto& one = given[i];
        if (one == "private" || one == "unix" || cidr::parse(one)) out.push_back(one);
        else
            reject(key, i,
                   std::string(key) + " has " + shown(one) +
                       "; allowed are addresses, ranges such as 10.0.0.0/8, private and unix");
    }
    return out;
}

std::optional<listen_address> table::listen(std::string_view key) const
{
    const auto given = text(key);
    if (!given) return std::nullopt;
    const auto read = parse_listen_address(*given);
    if (!read)
        reject(key, std::string(key) + " is " + shown(*given) +
                        "; allowed is ADDRESS:PORT or [IPV6]:PORT with a port of 0 to 65535");
    return read;
}

std::optional<std::string> table::secret(std::string_view key, std::size_t least) const
{
    const auto* value = find(key);
    if (value == nullptr) return std::nullopt;
    const auto* text = std::get_if<std::string>(&value->is);
    if (text != nullptr && text->size() >= least) return *text;
    reject(key, std::string(key) + " (not shown) must be a string of " + std::to_string(least) +
                    " bytes or more");
    return std::nullopt;
}

table table::child(std::string_view key) const
{
    const auto* value = find(key);
    if (value != nullptr && std::holds_alternative<node::fields>(value->is))
        return table(*whole_, value, std::string(key), joined(path_, key), at_);
    if (value != nullptr) wrong_type(key, *value, "a table");
    return table(*whole_, nullptr, std::string(key), joined(path_, key), at_);
}

std::vector<table> table::children() const
{
    std::vector<table> out;
    for (const auto& key : keys()) {
        auto one = child(key);
        if (one.written()) out.push_back(std::move(one));
    }
    return out;
}

std::vector<table> table::list(std::string_view key) const
{
    const auto* value = find(key);
    if (value == nullptr) return {};
    const auto* list = std::get_if<node::list>(&value->is);
    if (list == nullptr) {
        wrong_type(key, *value, "an array of tables");
        return {};
    }
    std::vector<table> out;
    for (const auto& element : *list) {
        if (std::holds_alternative<node::fields>(element.is))
            out.push_back(
                table(*whole_, &element, std::string(key), joined(path_, key), element.at));
        else wrong_type(key, element, "an array of tables");
    }
    return out;
}

std::vector<std::string> table::keys() const
{
    std::vector<std::string> out;
    if (in_ == nullptr) return out;
    for (const auto& field : std::get<node::fields>(in_->is).of) out.push_back(field.key);
    return out;
}

std::size_t table::errors() const noexcept { return whole_->errors.size(); }

void table::reject(std::string_view key, std::string text) const
{
    whole_->add(whole_->errors, at(key), path_, std::move(text));
}

void table::reject(std::string_view key, std::size_t index, std::string text) const
{
    auto        where = at(key);
    const auto* found = in_ != nullptr ? in_->find(key) : nullptr;
    const auto* list  = found != nullptr ? std::get_if<node::list>(&found->is) : nullptr;
    if (list != nullptr && index < list->size()) where = (*list)[index].at;
    whole_->add(whole_->errors, where, path_, std::move(text));
}

void table::warn(std::string_view key, std::string text) const
{
    whole_->add(whole_->warnings, at(key), path_, std::move(text));
}

void table::skip() const
{
    if (in_ != nullptr) in_->skipped = true;
}

}  // namespace weir::config
