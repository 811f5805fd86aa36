// SPDX-License-Identifier: BSL-1.0

#include "mail/message.hpp"

#include "pages.hpp"

#include <ctime>
#include <string_view>

namespace signup {

namespace {

/// RFC 5322 section 3.3, in UTC.
std::string date_of(weir::instant at)
{
    const auto count = static_cast<std::time_t>(
        std::chrono::floor<std::chrono::seconds>(at.time_since_epoch()).count());
    std::tm parts{};
    ::gmtime_r(&count, &parts);
    // Not strftime's names of days and months, which a locale may change.
    constexpr std::string_view days     = "SunMonTueWedThuFriSat";
    constexpr std::string_view months   = "JanFebMarAprMayJunJulAugSepOctNovDec";
    char                       rest[40] = {};
    std::strftime(rest, sizeof rest, " %Y %H:%M:%S +0000", &parts);
    return std::string(days.substr(static_cast<std::size_t>(parts.tm_wday) * 3, 3)) + ", " +
           std::to_string(parts.tm_mday) + ' ' +
           std::string(months.substr(static_cast<std::size_t>(parts.tm_mon) * 3, 3)) + rest;
}

std::string subject_of(const mail& of)
{
    if (of.kind == "revised") return "Your application was changed";
    if (of.confirmed) return "Your application is confirmed already";
    return "Please confirm your application";
}

std::string body_of(const mail& of, const links& with)
{
    const auto confirm =
        "Please confirm that it was you:\r\n\r\n" + with.to("confirm", of.id) + "\r\n\r\n";
    const auto revise = "You can change what you wrote here:\r\n\r\n" + with.to("revise", of.id) +
                        "\r\n\r\nThe links are good until " + in_words(of.expires) + ".\r\n" +
                        "If you did not apply, do nothing: nothing will follow.\r\n";
    std::string text = "Hello,\r\n\r\n";
    if (of.kind == "revised") text += "your application was changed.\r\n\r\n";
    else if (of.confirmed) text += "your application is here and confirmed.\r\n\r\n";
    else text += "somebody applied with this address.\r\n\r\n";
    if (!of.confirmed) text += confirm;
    return text + revise;
}

}  // namespace

message write_message(const mail& of, const links& with, const std::string& from, weir::instant at)
{
    const auto  host = from.substr(from.rfind('@') + 1);
    std::string text;
    const auto  add = [&](std::string_view name, std::string_view said) {
        text.append(name).append(": ").append(said).append("\r\n");
    };
    add("Date", date_of(at));
    add("From", from);
    add("To", of.to);
    add("Subject", subject_of(of));
    add("Message-ID", '<' + of.id + '@' + host + '>');
    add("Auto-Submitted", "auto-generated");  // RFC 3834: no out-of-office answers
    if (of.perhaps_twice) add("X-Weir-Perhaps-Twice", "yes");
    add("MIME-Version", "1.0");
    add("Content-Type", "text/plain; charset=us-ascii");
    text += "\r\n" + body_of(of, with);
    return {.id = of.id, .from = from, .to = of.to, .text = std::move(text)};
}

}  // namespace signup
