// SPDX-License-Identifier: BSL-1.0
#pragma once

// The value of one header as a key: an API key, a tenant that the edge writes. A client chooses
// what it sends, so a limit by it alone bounds honest callers only; see docs/keys.md.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "weir/extract/field.hpp"
#include "weir/extract/forwarded.hpp"
#include "weir/extract/request.hpp"
#include "weir/invalid.hpp"

namespace weir {

struct header_options {
    /// Two lines with different values are `absence::ambiguous`, which `step_for` rejects. This
    /// says that they are `absence::missing` instead.
    bool ambiguous_is_missing = false;
};

/// Reads one header of a request:
///
///     weir::header api_key("X-Api-Key");
///     per_key.admit(api_key(request));
///
/// Names match in either case; `X_Api_Key` is another name. Immutable, hence thread-safe.
class header {
public:
    /// The longest value that is a key, in bytes. No server's default lets a longer line in.
    static constexpr std::size_t most_bytes = 8192;

    /// Throws std::invalid_argument if the name is no token of RFC 9110 section 5.6.2.
    explicit header(std::string name, const header_options& options = {});

    /// The value without the SP and HTAB around it (RFC 9110 section 5.5), all else as sent: bytes
    /// of 0x80 and above are kept, commas do not split. Equal lines are one; lines that differ, be
    /// it that one is empty, are ambiguous, since applications disagree which of them counts. CR,
    /// LF or NUL in any line is malformed.
    ///
    /// Of a server that shows the first line only (`line_fidelity::later_dropped`) the first line
    /// is the value: the application behind it sees no other. Borrows from the request; linear in
    /// the bytes of its lines; no allocation.
    [[nodiscard]] field operator()(const request& from) const;

    [[nodiscard]] std::string_view name() const noexcept { return name_; }

private:
    std::string    name_;
    header_options options_;
};

// ---------------------------------------------------------------------------------------------

inline header::header(std::string name, const header_options& options)
    : name_(std::move(name)), options_(options)
{
    std::string_view rest = name_;
    if (detail::take_token(rest).empty() || !rest.empty())
        detail::invalid("header: the name, of " + std::to_string(name_.size()) +
                        " bytes, is none; allowed are letters, digits and !#$%&'*+-.^_`|~");
}

inline field header::operator()(const request& from) const
{
    std::optional<std::string_view> first;
    bool                            malformed = false, differ = false;
    from.for_each_line(name_, [&](std::string_view line) {
        const auto value = detail::trimmed(line);
        if (!first) first = value;
        malformed = malformed || detail::is_malformed(value);
        differ    = differ || value != *first;
    });
    if (malformed) return field(absence::malformed);
    if (differ) return field(options_.ambiguous_is_missing ? absence::missing : absence::ambiguous);
    return field(first.value_or(std::string_view()), most_bytes);
}

}  // namespace weir
