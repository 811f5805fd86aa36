// SPDX-License-Identifier: BSL-1.0
#pragma once

// What is kept, and what becomes of it: applications, and the mails that they wait for. Every
// function is one transaction, begun and ended in it.

#include "storage/connection.hpp"

#include "weir/forms/render_token.hpp"
#include "weir/time.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace signup {

struct application {
    std::string id        = {};
    std::string canonical = {};  ///< Of the address: one application each.
    std::string email     = {};
    std::string name      = {};
    std::string about     = {};
};

enum class receipt {
    stored,
    repeated,    ///< There is one of this address; nothing of it changed.
    unknown,     ///< There is none that it could be about.
    token_used,  ///< Nothing was written, as for all that follow.
    token_full,
    no_window,
};

/// A mail that a worker has for itself until its lease ends.
struct mail {
    std::string   id            = {};
    std::string   kind          = {};  ///< verify, repeat, revised
    std::string   to            = {};
    std::string   claim         = {};
    bool          confirmed     = false;
    bool          perhaps_twice = false;  ///< A worker ended between handing it on and saying so.
    std::int64_t  tries         = 0;
    weir::instant expires       = {};  ///< Of its link.
};

/// What the link in a mail leads to.
struct challenge {
    application   of        = {};
    weir::instant expires   = {};  ///< The epoch while its mail was not released.
    bool          confirmed = false;
};

struct hour_of_mails {
    std::int64_t  hour   = 0;  ///< Since 1970.
    std::uint64_t queued = 0, sent = 0;
};

struct backlog {
    std::vector<hour_of_mails>   hours   = {};  ///< Those with anything in them, in order.
    std::uint64_t                waiting = 0, late = 0, perhaps_twice = 0, given_up = 0;
    std::optional<weir::instant> last_due = {};
    weir::instant                at       = {};
};

/// One connection's view of them, for one thread at a time. Everything throws storage_error.
class records {
public:
    explicit records(storage& on) : on_(on.open()) {}

    /// The row, its place under the caps, its token and its mail: all of it or nothing. The unique
    /// address decides before a place is looked for.
    receipt apply(const application& made, const weir::token_check& token);

    /// Another mail for the application of this address, at once, whatever the caps say; none while
    /// one still waits: that is the answer, and nobody gets ahead of the backlog by asking twice.
    receipt reissue(std::string_view canonical, const weir::token_check& token);

    /// Changes what the application says, and queues a mail about it, at once.
    receipt revise(const application& changed, const weir::token_check& token);

    [[nodiscard]] std::optional<challenge> challenge_of(std::string_view mail_id);

    /// False if there is no such application.
    bool confirm(std::string_view application_id);

    /// What is due, the oldest first, at most `most`, for `lease`. First mails that come late,
    /// because nobody sent for a while, take places that this hour and day still have, so that
    /// what has piled up does not leave faster than the caps allow. A link lives from here on.
    std::vector<mail> claim(const weir::calendar_caps& caps, std::size_t most, weir::duration lease,
                            weir::duration link_life);

    /// To be called right before it is handed on. False: the lease has ended, and it is another's.
    bool begin(const mail& one, weir::duration lease);

    void sent(const mail& one);

    /// It did not go; to be tried again after `wait`. `perhaps_gone`: nobody can say whether it
    /// did.
    void put_back(const mail& one, weir::duration wait, bool perhaps_gone);

    /// It never will.
    void give_up(const mail& one, std::string_view why);

    [[nodiscard]] backlog look_back(const weir::calendar_caps& caps);

    [[nodiscard]] bool usable() const noexcept { return on_->usable(); }

    /// Whether the database answers.
    void probe() { on_->run("SELECT 1", {}); }

    void sweep() { on_->sweep(on_->now()); }

private:
    receipt apply_within(const application& made, const weir::token_check& token, weir::instant at);
    receipt answer_again(std::string_view canonical, std::string_view event,
                         const weir::token_check& token, weir::instant at);
    void    add_event(std::string_view application, std::string_view kind, weir::instant at,
                      std::optional<weir::instant> deferred_until = std::nullopt);
    void    add_mail(std::string_view application, std::string_view kind, bool counted,
                     weir::instant due);
    std::int64_t room(const weir::calendar_caps& caps, weir::instant at);
    template <class Work>
    receipt transacted(Work work);

    std::unique_ptr<connection> on_;
};

}  // namespace signup
