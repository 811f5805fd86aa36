// SPDX-License-Identifier: BSL-1.0
#pragma once

// The pages, as HTML that needs no script and loads one style sheet. Whatever people sent is
// written as text.

#include "form.hpp"
#include "storage/records.hpp"

#include "weir/forms/honeypot.hpp"
#include "weir/time.hpp"

#include <string>
#include <string_view>

namespace signup {

/// A form to be filled in, or to be handed back.
struct form_page {
    std::string_view to     = "/apply";  ///< Where it is sent: apply, revise or reissue.
    entries          values = {};
    complaints       wrong  = {};
    std::string      notice = {};  ///< What the reader has to know first; empty: nothing.
    std::string      token  = {};
    std::string      code   = {};  ///< Of the link that led here, for revise.
};

std::string write_form(const form_page& of, const weir::honeypot& trap);

/// A page that says something.
std::string write_notice(std::string_view title, std::string_view text);

std::string received_page();
std::string confirm_page(std::string_view code);
std::string operator_page();

/// For operator.js: {"now":…,"per_hour":…,"hours":[{"hour":…,"queued":…,"sent":…}],…}.
std::string write_backlog(const backlog& of, const weir::calendar_caps& caps);

std::string      style_sheet(const weir::honeypot& trap);
std::string_view operator_script() noexcept;

/// "5 January 2026, 09:20 UTC"
std::string in_words(weir::instant at);

/// "a minute", "25 minutes", "3 hours": rounded up.
std::string in_words(std::chrono::seconds wait);

}  // namespace signup
