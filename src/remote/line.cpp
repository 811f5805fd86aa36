// SPDX-License-Identifier: BSL-1.0

#include "weir/remote/line.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "weir/remote/ready.hpp"

namespace weir::remote {
namespace {

/// Whether it waits for whoever else has its row: who only looks does not.
bool locks(const row& asked) noexcept { return !asked.manner->policy.empty(); }

}  // namespace

line::~line() = default;

bool line::enter(seat& one) noexcept
{
    const auto now = clock::now();
    if (inside_ >= options_.waiting || !may_wait(one, now) || !breaker_.allow(now)) return false;
    ++inside_;
    one.at = seat::stage::waiting;
    waiting_.push_back(one);
    return true;
}

/// False for what would wait for a row that somebody holds, and others with it.
bool line::may_wait(seat& one, time_point at) noexcept
{
    if (held_.empty()) return true;
    const auto now = [&](const seat& ask) {
        if (!locks(ask.asked)) return true;
        const auto way = held_.look(ask.asked.who, at);
        one.alone |= way == held_keys::way::alone;
        return way != held_keys::way::not_now;
    };
    return one.set.empty()
               ? now(one)
               : std::ranges::all_of(one.set, [&](const seat* ask) { return now(*ask); });
}

/// A seat whose caller goes without an answer. What was sent may still be counted.
void line::leave(seat& own) noexcept
{
    if (own.at == seat::stage::waiting) {
        waiting_.remove(own);
    } else if (trip_.set == &own) {
        trip_.set = nullptr;
    } else {
        for (auto& part : trip_.parts())
            if (part.asked.who == own.asked.who) part.seats.remove(own);
    }
    own.at = seat::stage::apart;
    --inside_;
}

/// The same, and what it says of the store: without a connection it is away.
void line::gone(turn& held, seat& own) noexcept
{
    leave(own);
    if (wire_ == nullptr) judge(held, false);
}

/// A seat is rung once it is done, or when it is its turn to drive; nobody else touches it then, so
/// that most callers take the lock once.
void line::ask(seat& own) noexcept
{
    if (!born_.here()) return;
    turn held(mutex_);
    if (!enter(own)) return;
    if (driver_ == nullptr && !served_) driver_ = &own;
    const bool pokes = served_ && !under_way();
    if (driver_ == &own) return drive(held, own);
    held.unlock();
    if (pokes) keeper_->poke();
    if (own.rung.wait(own.until) && own.at == seat::stage::done) return;
    held.lock();
    if (driver_ == &own) return own.rung.reset(), drive(held, own);
    if (own.at != seat::stage::done) return gone(held, own);
    held.unlock();
    own.rung.wait();  // whoever found it done is about to ring, and must find the seat here
}

bool line::post(seat& one) noexcept
{
    if (!born_.here()) return false;
    bool pokes = false;
    {
        const turn held(mutex_);
        if (!enter(one)) return false;
        pokes = !under_way();
    }
    if (pokes) keeper_->poke();
    return true;
}

void line::drive(turn& held, seat& own) noexcept
{
    while (own.at != seat::stage::done && clock::now() < own.until) {
        if (!under_way()) start(held);
        if (own.at == seat::stage::done) break;
        if (under_way()) {
            go_on(held, own.until);
        } else {
            held.unlock();
            own.rung.wait(own.until);  // until `mend` rings
            held.lock();
            own.rung.reset();
        }
    }
    const bool left = own.at != seat::stage::done;
    hand_over(own);
    if (left) gone(held, own);
}

/// The next to drive is somebody who waits anyway.
void line::hand_over(const seat& own) noexcept
{
    driver_ = nullptr;
    if (served_) {
        if (under_way() || !waiting_.empty()) keeper_->poke();
        return;
    }
    const auto offer = [&](seat& one) {
        if (driver_ == nullptr && &one != &own) driver_ = &one;
    };
    each_seat(offer);
    for (auto* one = waiting_.first(); one != nullptr && driver_ == nullptr; one = one->next)
        offer(*one);
    if (driver_ != nullptr) driver_->rung.ring();
}

template <class Visit>
void line::each_seat(Visit&& visit) noexcept
{
    if (trip_.set != nullptr) visit(*trip_.set);
    for (auto& part : trip_.parts())
        for (auto* one = part.seats.first(); one != nullptr;) {
            auto* const next = one->next;
            visit(*one);
            one = next;
        }
}

/// Begins the next trip if there are a connection and something to carry.
void line::start(turn& held) noexcept
{
    const bool sweeps = rows_ >= options_.sweep_after || sweep_due_.load(std::memory_order_relaxed);
    if (wire_ == nullptr || (!sweeps && waiting_.empty())) return;
    if (!wire_->usable()) return lose(held);
    if (sweeps) {
        rows_ = 0;
        sweep_due_.store(false, std::memory_order_relaxed);
        trip_.sweep();
    } else if (!trip_.fill(waiting_)) {
        return;
    }
    rows_ += trip_.parts().size();
    send(held);
}

void line::send(turn& held) noexcept
{
    trip_.until = clock::now() + options_.deadline;
    held.unlock();
    const bool sent = wire_->send(trip_);
    held.lock();
    if (!sent) settle(held, wire::progress::broken);
}

/// Waits for the connection, and no longer than the caller or the trip can.
void line::go_on(turn& held, time_point until) noexcept
{
    const auto limit = std::min(until, trip_.until);
    pollfd     ready{.fd      = wire_->descriptor(),
                     .events  = static_cast<short>(POLLIN | (wire_->writes() ? POLLOUT : 0)),
                     .revents = 0};
    held.unlock();
    wait_for(std::span(&ready, 1), limit);
    const auto come = wire_->advance(trip_);
    held.lock();
    settle(held, come);
}

/// What came of a trip. Nothing that may have been counted is asked for again.
void line::settle(turn& held, wire::progress come) noexcept
{
    using enum wire::progress;
    if (come == busy && clock::now() < trip_.until) return;
    if (come == again && trip_.tries++ == 0) return send(held);
    const bool apart = come == locked && trip_.parts().size() > 1 && trip_.set == nullptr;
    note_held(come);
    if (come == answered) answer();
    else if (come == undone || apart) put_back(apart);
    else fail_trip();
    trip_.clear();
    if (come == busy || come == undone || come == broken) lose(held);
    if (come != locked && come != undone) judge(held, come == answered);
    start(held);  // before those are told who were answered: they would only come in between
    if (!done_.empty()) deliver(held);
}

void line::answer() noexcept
{
    if (auto* const head = std::exchange(trip_.set, nullptr)) {
        for (std::size_t n = 0; n < trip_.parts().size(); ++n)
            head->set[n]->said = trip_.parts()[n].said;
        finish(*head, true);
    }
    for (auto& part : trip_.parts())
        while (auto* const one = part.seats.first()) {
            part.seats.remove(*one);
            one->said = part.said;
            finish(*one, true);
        }
}

void line::fail_trip() noexcept
{
    each_seat([&](seat& one) { finish(one, false); });
}

/// Those of a statement that was not run wait again. Apart: one of its rows was locked by somebody
/// for too long, and the others shall not suffer with it.
void line::put_back(bool apart) noexcept
{
    const auto wait = [&](seat& one) {
        one.alone |= apart;
        one.at = seat::stage::waiting;
        waiting_.push_front(one);
    };
    if (auto* const head = std::exchange(trip_.set, nullptr)) wait(*head);
    for (auto& part : trip_.parts())
        while (auto* const one = part.seats.first()) {
            part.seats.remove(*one);
            wait(*one);
        }
}

/// A row that was waited for alone and in vain, or answered. Who waits for it as well would take as
/// long again, one after the other.
void line::note_held(wire::progress come) noexcept
{
    const auto& parts = trip_.parts();
    if (trip_.carries != trip::kind::ask || !locks(parts.front().asked)) return;
    if (come == wire::progress::answered && !held_.empty())
        for (const auto& part : parts) held_.drop(part.asked.who);
    if (come != wire::progress::locked || parts.size() > 1) return;
    const auto who = parts.front().asked.who;
    held_.add(who, clock::now());
    for (auto* one = waiting_.first(); one != nullptr;) {
        auto& own = *std::exchange(one, one->next);
        if (!own.set.empty() || own.asked.who != who || !locks(own.asked)) continue;
        waiting_.remove(own);
        finish(own, false);
    }
}

void line::lose(turn& held) noexcept
{
    connected_.store(false, std::memory_order_release);
    auto gone = std::exchange(wire_, nullptr);
    held.unlock();
    gone.reset();
    keeper_->lost();
    held.lock();
}

void line::judge(turn& held, bool answered) noexcept
{
    const bool turned = answered ? breaker_.succeeded() : breaker_.failed(clock::now());
    if (!turned) return;
    held.unlock();
    keeper_->changed(answered);
    held.lock();
}

void line::finish(seat& one, bool answered) noexcept
{
    one.answered = answered;
    one.at       = seat::stage::done;
    --inside_;
    if (&one != driver_) done_.push_back(&one);
}

/// A seat that was rung may be gone at once.
void line::deliver(turn& held) noexcept
{
    auto told = std::exchange(done_, {});
    held.unlock();
    for (auto* const one : told) {
        if (one->complete != nullptr) one->complete(*one);
        else one->rung.ring();
    }
    told.clear();
    held.lock();
    if (done_.empty()) done_ = std::move(told);  // its memory
}

void line::mend(std::unique_ptr<wire> with) noexcept
{
    const turn held(mutex_);
    wire_ = std::move(with);
    connected_.store(true, std::memory_order_release);
    if (driver_ != nullptr) driver_->rung.ring();
    else if (served_) keeper_->poke();
}

void line::be_served() noexcept
{
    const turn held(mutex_);
    served_ = true;
}

/// Lets go of the callbacks that are late; tells when the next one is. Callers who wait for
/// themselves see to their own deadlines.
line::time_point line::expire(time_point at) noexcept
{
    auto       next = time_point::max();
    const auto look = [&](seats& in, seat& one) {
        if (one.complete == nullptr) return;
        if (one.until > at) {
            next = std::min(next, one.until);
        } else {
            in.remove(one);
            finish(one, false);
        }
    };
    const auto look_at_all = [&](seats& in) {
        for (auto* one = in.first(); one != nullptr;) look(in, *std::exchange(one, one->next));
    };
    look_at_all(waiting_);
    for (auto& part : trip_.parts()) look_at_all(part.seats);
    return next;
}

line::attention line::serve() noexcept
{
    turn held(mutex_);
    if (driver_ != nullptr) return {};  // a caller still drives, and pokes when it goes
    for (;;) {
        if (!under_way()) start(held);
        if (!under_way()) break;
        held.unlock();
        const auto come = wire_->advance(trip_);
        held.lock();
        settle(held, come);
        if (come == wire::progress::busy && under_way()) break;
    }
    attention next{.until = expire(clock::now())};
    if (wire_ == nullptr)  // as `gone` says of callers who wait
        for (auto late = done_.size(); late > 0; --late) judge(held, false);
    if (!done_.empty()) deliver(held);
    if (under_way()) {
        next.descriptor = wire_->descriptor();
        next.writes     = wire_->writes();
        next.until      = std::min(next.until, trip_.until);
    }
    return next;
}

void line::close() noexcept
{
    turn held(mutex_);
    while (auto* const one = waiting_.first()) {
        waiting_.remove(*one);
        finish(*one, false);
    }
    fail_trip();
    trip_.clear();
    wire_.reset();
    if (!done_.empty()) deliver(held);
}

}  // namespace weir::remote
