// SPDX-License-Identifier: BSL-1.0
#pragma once

// A TOML file as its readers see it: each key is asked for by its type, and nothing stops at the
// first wrong one. All that is wrong or odd is kept with its line and column, to be told together.
// TOML: https://toml.io/en/v1.0.0.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/config/environment.hpp"
#include "weir/time.hpp"

namespace weir::config {

/// Where something stands in a file, both from 1; a column counts characters. 0: nowhere.
struct place {
    std::uint32_t line   = 0;
    std::uint32_t column = 0;

    friend auto operator<=>(const place&, const place&) = default;
};

/// One thing that is wrong or odd.
struct finding {
    std::string file  = {};
    place       at    = {};
    std::string table = {};  ///< `plugins.rateLimit`; empty for the file as a whole.
    std::string text  = {};  ///< `max must not be negative`. One line, no control characters.

    /// Says only that a value is of the wrong type; told after all that readers say themselves.
    bool of_type = false;

    friend bool operator==(const finding&, const finding&) = default;
};

/// `weir.toml:12:7: plugins.rateLimit: max must not be negative`.
[[nodiscard]] std::string to_string(const finding& of);

/// One a line, with a line feed after each.
[[nodiscard]] std::string to_string(std::span<const finding> of);

class table;
struct parsed;
struct node;

/// A parsed file and what its readers said about it. Movable; tables borrow from it and stay good
/// when it is moved. Not thread-safe. No function throws anything but std::bad_alloc.
class document {
public:
    static constexpr std::size_t most_bytes = 1 << 20;  ///< Of a file. More is an error.

    /// `name` is what findings call the file. A text that is no TOML gives an empty document with
    /// one error. Linear in the text.
    [[nodiscard]] static document parse(std::string_view text, std::string_view name);

    /// A file that cannot be read gives an empty document with one error.
    [[nodiscard]] static document read(const std::string& file);

    document(document&&) noexcept;
    document& operator=(document&&) noexcept;
    ~document();

    /// The whole file: `root().child("basic")`, `root().child("plugins").children()`.
    [[nodiscard]] table root() const;

    [[nodiscard]] bool ok() const noexcept;  ///< No error until now.

    /// All until now, by their place in the file; errors about types after the others.
    [[nodiscard]] std::vector<finding> errors() const;
    [[nodiscard]] std::vector<finding> warnings() const;

    /// Adds a warning for each key that nobody asked for until now and names the nearest one that
    /// somebody did. Call it once, after all readers. A table nobody asked for is one warning.
    void warn_of_strangers();

private:
    explicit document(std::unique_ptr<parsed> of) noexcept;

    std::unique_ptr<parsed> of_;
};

/// A table of a document, or one that is not written there, which then has no keys. A cheap value;
/// borrows from the document. A wrong value is told and answered with `otherwise`, so that reading
/// goes on.
class table {
public:
    [[nodiscard]] const std::string& path() const noexcept;  ///< `plugins.rateLimit`; root: empty.
    [[nodiscard]] const std::string& name() const noexcept;  ///< `rateLimit`, as it is written.
    [[nodiscard]] bool               written() const noexcept;

    [[nodiscard]] bool  has(std::string_view key) const;
    [[nodiscard]] place at(std::string_view key) const;  ///< Of its value, else of the table.

    [[nodiscard]] std::optional<std::string> text(std::string_view key) const;
    [[nodiscard]] std::string text(std::string_view key, std::string_view otherwise) const;

    [[nodiscard]] bool flag(std::string_view key, bool otherwise) const;

    /// Any number of 64 bits with sign.
    [[nodiscard]] std::optional<std::int64_t> integer(std::string_view key) const;

    /// A number in [least, most].
    template <std::integral Number>
    [[nodiscard]] Number integer(std::string_view key, Number otherwise, Number least,
                                 Number most) const;

    /// A text that `parse_duration` reads, in [least, most].
    [[nodiscard]] weir::duration duration(std::string_view key, weir::duration otherwise,
                                          weir::duration least = weir::duration::zero(),
                                          weir::duration most  = weir::duration::max()) const;

    /// One of these words, as it is written.
    [[nodiscard]] std::string one_of(std::string_view key, std::string_view otherwise,
                                     std::initializer_list<std::string_view> words) const;

    /// A list of texts; empty if the key is not there. What is wrong is left out.
    [[nodiscard]] std::vector<std::string> texts(std::string_view key) const;

    /// Addresses, ranges, `private` and `unix`: what `client_ip_options` takes as `trusted`.
    [[nodiscard]] std::vector<std::string> ranges(std::string_view key) const;

    /// `127.0.0.1:8080` or `[::1]:8080`.
    [[nodiscard]] std::optional<listen_address> listen(std::string_view key) const;

    /// A text of `least` bytes or more. Its value is never part of a finding.
    [[nodiscard]] std::optional<std::string> secret(std::string_view key, std::size_t least) const;

    /// The table of this name; one that is not written if there is none or it is no table.
    [[nodiscard]] table child(std::string_view key) const;

    /// All tables in this one, in the order of the file; any other value in it is an error.
    [[nodiscard]] std::vector<table> children() const;

    /// The tables of `[[key]]`, or of a list of inline tables.
    [[nodiscard]] std::vector<table> list(std::string_view key) const;

    /// Every key of this table, in the order of the file. Counts as asking for none.
    [[nodiscard]] std::vector<std::string> keys() const;

    /// How many errors the whole document has until now, to see whether a reader added one.
    [[nodiscard]] std::size_t errors() const noexcept;

    /// Adds an error, or a warning, at the value of `key`, or at the table if it has no such key;
    /// with `index` at that element of a list. `text` names the key.
    void reject(std::string_view key, std::string text) const;
    void reject(std::string_view key, std::size_t index, std::string text) const;
    void warn(std::string_view key, std::string text) const;

    /// Nobody is to be warned of keys in here, because it is not known what it is for.
    void skip() const;

private:
    friend class document;
    table(parsed& whole, const node* in, std::string name, std::string path, place fallback);

    const node*                 find(std::string_view key) const;
    std::optional<std::int64_t> integer_in(std::string_view key, std::int64_t least,
                                           std::int64_t most) const;
    void wrong_type(std::string_view key, const node& is, std::string_view wanted) const;

    parsed*     whole_;
    const node* in_;  // null: not written
    std::string name_;
    std::string path_;
    place       at_;
};

/// What an operator wrote, in quotes and fit for one line of a log: at most 60 bytes of it.
[[nodiscard]] std::string shown(std::string_view written);

/// The word of `known` that `written` was most likely meant to be, or empty. Two letters more,
/// less, other or swapped at most, and never more than a third of the word. Case is ignored.
[[nodiscard]] std::string_view nearest(std::string_view                  written,
                                       std::span<const std::string_view> known);

// ---------------------------------------------------------------------------------------------

template <std::integral Number>
Number table::integer(std::string_view key, Number otherwise, Number least, Number most) const
{
    constexpr auto held = [](Number n) {
        return std::cmp_less(INT64_MAX, n) ? INT64_MAX : static_cast<std::int64_t>(n);
    };
    const auto given = integer_in(key, held(least), held(most));
    return given ? static_cast<Number>(*given) : otherwise;
}

}  // namespace weir::config
