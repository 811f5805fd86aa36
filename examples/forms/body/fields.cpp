// SPDX-License-Identifier: BSL-1.0

#include "body/fields.hpp"

#include "body/media_type.hpp"

#include "weir/http/refusal.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace forms {

namespace {

[[noreturn]] void refuse(const char* code, std::string message)
{
    throw body_problem{422, code, std::move(message)};
}

/// Calls `visit` with each character, none of them longer than four bytes.
template <class Visit>
std::size_t count_characters(std::string_view text, Visit visit)
{
    std::size_t count = 0;
    for (; !text.empty(); ++count) {
        const auto length = weir::detail::utf8_length(text);
        if (length == 0) refuse("invalid_field", "A field is not well-formed UTF-8.");
        visit(text.substr(0, length));
        text.remove_prefix(length);
    }
    return count;
}

/// C0, DEL and C1: the category Cc of Unicode.
bool is_control(std::string_view character)
{
    const auto first = static_cast<unsigned char>(character[0]);
    if (character.size() == 1) return first < 0x20 || first == 0x7f;
    return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

void check(const field& one)
{
    bool       control = false;
    const auto name    = count_characters(one.name, [&](std::string_view character) {
        control = control || is_control(character);
    });
    const auto value = count_characters(one.value, [](std::string_view) {});
    if (name == 0) refuse("invalid_field", "A field has no name.");
    if (name > longest_name)
        refuse("invalid_field", "A field's name is longer than " + std::to_string(longest_name) +
                                    " characters.");
    if (control) refuse("invalid_field", "A field's name has a control character.");
    if (value > longest_value)
        refuse("invalid_field", "A field's value is longer than " + std::to_string(longest_value) +
                                    " characters.");
    if (one.value.find('\0') != std::string::npos)
        refuse("invalid_field", "A field's value has a NUL.");
}

bool is_utf8(const media_type& type)
{
    const auto* charset = type.parameter("charset");
    if (charset == nullptr) return true;
    const auto name = lower_case(*charset);
    return name == "utf-8" || name == "utf8" || name == "us-ascii";
}

/// One to seventy characters (RFC 2046, section 5.1.1).
const std::string& boundary_of(const media_type& type)
{
    const auto* boundary = type.parameter("boundary");
    if (boundary == nullptr || boundary->empty() || boundary->size() > 70)
        throw body_problem{400, "malformed_body", "The multipart type has no usable boundary."};
    return *boundary;
}

std::vector<field> read_as(const std::optional<media_type>& type, std::string_view body)
{
    if (type && is_utf8(*type)) {
        if (type->type == "application/x-www-form-urlencoded") return read_urlencoded(body);
        if (type->type == "multipart/form-data") return read_multipart(boundary_of(*type), body);
        if (type->type == "application/json") return read_json(body);
    }
    throw body_problem{415, "unsupported_media_type",
                       "Send application/x-www-form-urlencoded, multipart/form-data or "
                       "application/json, in UTF-8."};
}

}  // namespace

void add_field(std::vector<field>& to, field one)
{
    if (to.size() == most_fields)
        refuse("too_many_fields",
               "There are more than " + std::to_string(most_fields) + " fields.");
    to.push_back(std::move(one));
}

std::vector<field> read_fields(std::string_view content_type, std::string_view content_encoding,
                               std::string_view body)
{
    if (!content_encoding.empty() && lower_case(content_encoding) != "identity")
        throw body_problem{415, "unsupported_encoding", "Send the body without a content coding."};
    auto fields = read_as(parse_media_type(content_type), body);
    std::ranges::for_each(fields, check);
    if (fields.empty()) refuse("empty_submission", "The submission has no fields.");
    return fields;
}

}  // namespace forms
