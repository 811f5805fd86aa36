// SPDX-License-Identifier: BSL-1.0
#pragma once

// Boost.Asio: `async_admit` waits for a decision in the style that a server has: coroutine, future
// or callback. Headers only; your project finds Boost as it does today. Where WEIR_STANDALONE_ASIO
// is defined, before this and all over the program, it is for Asio without Boost.

#include <optional>
#include <type_traits>
#include <utility>

#include "weir/decision.hpp"
#include "weir/key.hpp"
#include "weir/limiter.hpp"

#if defined(WEIR_STANDALONE_ASIO)
#include <asio/associated_allocator.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/execution/outstanding_work.hpp>
#include <asio/post.hpp>
#include <asio/prefer.hpp>
namespace weir::detail {
namespace net = ::asio;
}  // namespace weir::detail
#else
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
namespace weir::detail {
namespace net = ::boost::asio;
}  // namespace weir::detail
#endif

namespace weir {

/// `limiter.admit(who, what)` as an asynchronous operation that completes with
/// `void(weir::decision)`:
///
///     const auto made = co_await weir::async_admit(per_ip, client, asio::use_awaitable);
///
/// The subject is digested in this call, also where the token begins later (a coroutine, deferred).
/// The handler is posted to its associated executor and never run in here, and counts as work of
/// that executor until then. A callback without one is run on Asio's system executor: bind yours.
/// Cancellation changes nothing: the store's deadline bounds the wait, and what it admits is taken.
/// The limiter, and the context of the executor, must be there until the handler is called.
/// Thread-safe. Throws what the allocator of the handler throws, and what `admit_then` throws.
template <class Limiter, identity Who, class Token>
decltype(auto) async_admit(const Limiter& limiter, const Who& who, spending what, Token&& token);
template <class Limiter, identity Who, class Token>
decltype(auto) async_admit(const Limiter& limiter, const Who& who, Token&& token)
{
    return async_admit(limiter, who, spending{}, std::forward<Token>(token));
}

// ---------------------------------------------------------------------------------------------

namespace detail {

/// A handler with its argument, which runs where the handler wants to and in its memory.
template <class Handler>
struct asio_completion {
    using executor_type  = net::associated_executor_t<Handler>;
    using allocator_type = net::associated_allocator_t<Handler>;

    executor_type  get_executor() const noexcept { return net::get_associated_executor(handler); }
    allocator_type get_allocator() const noexcept { return net::get_associated_allocator(handler); }
    void           operator()() { std::move(handler)(std::move(made)); }

    Handler  handler;
    decision made;
};

/// The executor of a handler, with work to do as long as this exists. An executor_work_guard would
/// hold the bare executor beside it, longer than the work.
template <class Handler>
auto asio_work_of(const Handler& handler)
{
    return net::prefer(net::get_associated_executor(handler),
                       net::execution::outstanding_work.tracked);
}
template <class Handler>
using asio_work = std::decay_t<decltype(asio_work_of(std::declval<const Handler&>()))>;

/// What waits in the store. It posts and does not dispatch: whoever answers may be a thread of the
/// same executor that serves others at the moment, and must not run them within itself.
template <class Handler>
class asio_wait {
public:
    explicit asio_wait(Handler&& handler)
        : work_(asio_work_of(handler)), handler_(std::in_place, std::move(handler))
    {
    }

    /// Once the work is over the context may go, and nothing of the handler may touch it: not even
    /// the executor in what is left of it, which the store destroys some time later.
    void operator()(const decision& made)
    {
        net::post(asio_completion<Handler>{std::move(*handler_), made});
        handler_.reset();
        work_.reset();
    }

private:
    std::optional<asio_work<Handler>> work_;
    std::optional<Handler>            handler_;
};

template <class Limiter>
struct asio_initiation {
    template <class Handler>
    void operator()(Handler handler, const key& who, spending what) const
    {
        limiter->admit_then(who, what, asio_wait<Handler>(std::move(handler)));
    }

    const Limiter* limiter;
};

}  // namespace detail

template <class Limiter, identity Who, class Token>
decltype(auto) async_admit(const Limiter& limiter, const Who& who, spending what, Token&& token)
{
    return detail::net::async_initiate<Token, void(decision)>(
        detail::asio_initiation<Limiter>{&limiter}, token, limiter.digest(who), what);
}

}  // namespace weir
