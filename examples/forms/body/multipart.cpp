// SPDX-License-Identifier: BSL-1.0

// multipart/form-data (RFC 7578), texts only: a part with a file name is refused.

#include "body/fields.hpp"
#include "body/media_type.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace forms {

namespace {

constexpr std::size_t longest_part_head = 2048;  // names are 128 characters at most

[[noreturn]] void malformed(const char* what)
{
    throw body_problem{400, "malformed_body", std::string("The multipart body ") + what + '.'};
}

/// The name of a part, from its header lines.
std::string name_in(std::string_view head)
{
    std::optional<media_type> disposition;
    while (!head.empty()) {
        const auto line = head.substr(0, head.find("\r\n"));
        head.remove_prefix(line.size() + 2);
        const auto colon = line.find(':');
        if (colon == line.npos) malformed("has a header line without a colon");
        if (lower_case(line.substr(0, colon)) != "content-disposition") continue;
        disposition = parse_media_type(line.substr(colon + 1));
        if (!disposition) malformed("has a Content-Disposition that cannot be read");
    }
    if (!disposition || disposition->type != "form-data" || !disposition->parameter("name"))
        malformed("has a part without a name");
    if (disposition->parameter("filename") || disposition->parameter("filename*"))
        throw body_problem{422, "files_not_allowed", "Files are not accepted here."};
    return *disposition->parameter("name");
}

/// Takes one part, which begins right behind its delimiter's line. The line feed before the next
/// delimiter belongs to that one.
field take_part(std::string_view& rest, std::string_view delimiter)
{
    // A part without any header would have no name, so the head has one line at least.
    const auto head = rest.substr(0, longest_part_head).find("\r\n\r\n");
    if (head == rest.npos) malformed("has a part whose header does not end");
    auto       name  = name_in(rest.substr(0, head + 2));
    const auto begin = head + 4;
    // Searched from the empty line, so that an empty part is seen too.
    const auto end = rest.find(delimiter, head + 2);
    if (end == rest.npos) malformed("ends within a part");
    auto value = std::string(end < begin ? std::string_view() : rest.substr(begin, end - begin));
    rest.remove_prefix(end + delimiter.size());
    return {.name = std::move(name), .value = std::move(value)};
}

/// Spaces and tabs may stand behind a boundary (RFC 2046, section 5.1.1).
void skip_padding(std::string_view& rest)
{
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
}

}  // namespace

std::vector<field> read_multipart(std::string_view boundary, std::string_view body)
{
    const auto delimiter = "\r\n--" + std::string(boundary);
    const auto first     = std::string_view(delimiter).substr(2);
    if (body.starts_with(first)) {
        body.remove_prefix(first.size());
    } else {
        const auto at = body.find(delimiter);
        if (at == body.npos) malformed("does not contain its boundary");
        body.remove_prefix(at + delimiter.size());
    }
    std::vector<field> fields;
    while (!body.starts_with("--")) {
        skip_padding(body);
        if (!body.starts_with("\r\n")) malformed("has bytes behind a boundary");
        body.remove_prefix(2);
        add_field(fields, take_part(body, delimiter));
    }
    return fields;
}

}  // namespace forms
