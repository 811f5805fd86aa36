// SPDX-License-Identifier: BSL-1.0
#pragma once

// Who answers what. Each route checks first and works then.

#include "accounts.hpp"
#include "codes.hpp"
#include "door.hpp"
#include "mail.hpp"
#include "settings.hpp"

#include "weir/extract/client_ip.hpp"
#include "weir/extract/cookie.hpp"
#include "weir/extract/field.hpp"
#include "weir/remote/device_cookie.hpp"

#include <optional>
#include <string>

namespace httplib {
class Server;
struct Request;
struct Response;
}  // namespace httplib

namespace signin {

/// Thread-safe, as its parts are. Borrows all that its constructor is given.
class routes {
public:
    routes(const settings& chosen, const std::string& secret, const accounts& known, door& limits,
           mail& letters);

    void add_to(httplib::Server& server);

private:
    using request  = httplib::Request;
    using response = httplib::Response;

    void send_code(const request& from, response& to);
    void verify(const request& from, response& to);
    void locked(const request& from, response& to);
    void clear(const request& from, response& to);

    /// None if it is answered already: a form without a user, or with what cannot be one.
    std::optional<visitor> visitor_of(const request& from, response& to) const;

    /// The ticket's code, for an account, for the first time; else what to answer.
    weir::decision opens(const visitor& who, const request& from);

    void refuse(const request& from, response& to, const weir::decision& refused) const;
    void admit(const visitor& who, const request& from, response& to) const;

    const accounts&             known_;
    door&                       limits_;
    mail&                       letters_;
    codes                       codes_;
    weir::remote::device_cookie devices_;
    weir::client_ip             source_;
    int                         prefix_;
    weir::cookie                cookie_{"signin_device"};
    std::string                 token_;
};

}  // namespace signin
