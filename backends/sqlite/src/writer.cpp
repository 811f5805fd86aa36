// SPDX-License-Identifier: BSL-1.0

#include "weir/sqlite/writer.hpp"

#include <csignal>
#include <sqlite3.h>

#include <algorithm>
#include <random>
#include <utility>

namespace weir::sqlite {
namespace {

// A sweep looks at four rows for each ask that could have made one, so the table is passed once in
// a quarter as many asks as it has rows.
constexpr std::uint64_t asks_a_sweep = 64;
constexpr std::size_t   rows_a_sweep = 256;

constexpr std::chrono::microseconds longest_pause(1'000);

bool is_busy(int code) noexcept
{
    return (code & 0xff) == SQLITE_BUSY;
}

/// Whether the connection is of no more use after this.
bool is_lost(int code) noexcept
{
    switch (code & 0xff) {
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
        case SQLITE_IOERR:
        case SQLITE_CANTOPEN:
        case SQLITE_READONLY:
        case SQLITE_MISUSE: return true;
        default: return false;
    }
}

/// A thread that takes none of the program's signals: they are for threads that expect them.
template <class Work>
std::thread without_signals(Work work)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread made(std::move(work));
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return made;
}

}  // namespace

writer::writer(const writer_options& options)
    : options_(options), connection_(std::make_unique<connection>(options.where)),
      secret_changed_(connection_->secret_changed()),
      seats_(std::make_unique<seat[]>(options.waiting))
{
    // Somewhere in the table, so that processes that live shortly sweep all of it together.
    std::random_device entropy;
    swept_to_ = {std::uint64_t{entropy()} << 32 | entropy(), 0};
    spent_    = entropy() % asks_a_sweep;

    for (auto* const queue : {&free_, &looks_, &changes_, &batch_}) queue->reserve(options.waiting);
    for (std::size_t i = options.waiting; i > 0; --i)
        free_.push_back(static_cast<std::uint32_t>(i - 1));
    options_.where.patience = {};  // nobody waits for a file that is opened again
    thread_ = without_signals([this] { work(); });
}

writer::~writer()
{
    {
        const std::lock_guard held(mutex_);
        stopping_ = true;
    }
    wake_.notify_one();
    thread_.join();
}

outcome writer::perform(const step& asked, std::chrono::steady_clock::time_point until) noexcept
{
    turn held(mutex_);
    if (free_.empty()) return {};
    const auto place = free_.back();
    auto&      own   = seats_[place];
    auto&      queue = asked.verb == verb::peek ? looks_ : changes_;
    free_.pop_back();
    own.asked = asked, own.said = {}, own.at = seat::stage::waiting;
    queue.push_back(place);
    wake_.notify_one();

    if (own.ready.wait_until(held, until, [&] { return own.at == seat::stage::done; })) {
        own.at = seat::stage::free;
        free_.push_back(place);
        return own.said;
    }
    if (own.at == seat::stage::begun) {
        own.at = seat::stage::left;
    } else {
        std::erase(queue, place);
        own.at = seat::stage::free;
        free_.push_back(place);
    }
    return {};
}

void writer::work() noexcept
{
    turn held(mutex_);
    while (!stopping_) {
        if (looks_.empty() && changes_.empty()) {
            wake_.wait(held);
        } else if (usable(held)) {
            look(held);
            change(held);
        } else {
            fail_all();
        }
    }
    fail_all();
}

/// Looks take a snapshot, so they are answered also while another process holds the right to write.
void writer::look(turn& held) noexcept
{
    if (looks_.empty()) return;
    begin(looks_);
    held.unlock();
    const int code = run_batch(false);
    if (is_lost(code)) connection_.reset();
    held.lock();
    deliver(code == SQLITE_OK);
}

/// First the right to write, then the asks: those that come while it is waited for are carried too.
void writer::change(turn& held) noexcept
{
    if (changes_.empty() || !connection_) return;
    held.unlock();
    int code = connection_->begin_changing();
    held.lock();
    if (is_busy(code)) return pause(held);
    pause_ = shortest_pause;
    begin(changes_);
    held.unlock();
    if (code == SQLITE_OK) code = run_batch(true);
    if (is_lost(code)) connection_.reset();
    held.lock();
    deliver(code == SQLITE_OK);
}

/// Another process writes: tens of microseconds if all is well, so the first looks are frequent.
void writer::pause(turn& held) noexcept
{
    held.unlock();
    std::this_thread::sleep_for(pause_);
    pause_ = std::min(2 * pause_, longest_pause);
    held.lock();
}

/// The file as it was, or a new one where it was replaced or lost; looked for twice a second. Not
/// under the lock: a caller must be able to leave while the disk does not answer.
bool writer::usable(turn& held) noexcept
{
    held.unlock();
    if (connection_ && connection_->moved()) connection_.reset();
    if (const auto now = std::chrono::steady_clock::now(); !connection_ && now >= look_again_) {
        look_again_ = now + std::chrono::milliseconds(500);
        try {
            connection_ = std::make_unique<connection>(options_.where);
        } catch (...) {  // as lost as before
        }
    }
    held.lock();
    return connection_ != nullptr;
}

void writer::fail_all() noexcept
{
    for (auto* const queue : {&looks_, &changes_}) {
        begin(*queue);
        deliver(false);
    }
}

void writer::begin(seats& queue) noexcept
{
    batch_.swap(queue);
    for (const auto place : batch_) seats_[place].at = seat::stage::begun;
}

/// One transaction. Only the thread touches what was begun, so it needs no lock here.
int writer::run_batch(bool changes) noexcept
{
    // Rows of one page lie side by side; asks of one key stay in the order in which they came.
    const auto who = [this](std::uint32_t place) -> const key& { return seats_[place].asked.who; };
    std::stable_sort(batch_.begin(), batch_.end(), [&](auto a, auto b) { return who(a) < who(b); });

    int code = changes ? SQLITE_OK : connection_->begin_looking();
    if (code == SQLITE_OK) code = run_each();
    if (code == SQLITE_OK && changes) sweep();
    if (code == SQLITE_OK) code = connection_->commit();
    if (code != SQLITE_OK) connection_->roll_back();
    return code;
}

/// A fault that SQLite did not roll back concerns one ask only.
int writer::run_each() noexcept
{
    for (const auto place : batch_) {
        const int code = connection_->run(seats_[place].asked, seats_[place].said);
        if (code != SQLITE_OK && (is_lost(code) || !connection_->in_transaction())) return code;
    }
    return SQLITE_OK;
}

/// By the earliest instant of the batch: what is recovered then is for all of them. What a sweep
/// cannot do now the next one does.
void writer::sweep() noexcept
{
    spent_ += batch_.size();
    if (spent_ < asks_a_sweep || batch_.empty()) return;
    const auto first = std::min_element(batch_.begin(), batch_.end(), [this](auto a, auto b) {
        return seats_[a].asked.at < seats_[b].asked.at;
    });
    const auto rows = rows_a_sweep * (spent_ / asks_a_sweep);
    spent_ %= asks_a_sweep;
    connection_->sweep(swept_to_, rows, saturating_add(seats_[*first].asked.at, -options_.keep));
}

void writer::deliver(bool kept) noexcept
{
    for (const auto place : batch_) {
        auto& one = seats_[place];
        if (!kept) one.said = {};
        if (one.at == seat::stage::left) {
            one.at = seat::stage::free;
            free_.push_back(place);
        } else {
            one.at = seat::stage::done;
            one.ready.notify_one();
        }
    }
    batch_.clear();
}

}  // namespace weir::sqlite
