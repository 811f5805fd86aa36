// SPDX-License-Identifier: BSL-1.0

#include "weir/sqlite/store.hpp"

#include <chrono>
#include <stdexcept>

#include "weir/policy/fixed_window.hpp"
#include "weir/policy/gcra.hpp"
#include "weir/policy/lockout.hpp"
#include "weir/policy/sliding_window.hpp"

namespace weir::sqlite {

static_assert(store_of<store, fixed_window> && store_of<store, sliding_window> &&
              store_of<store, gcra> && store_of<store, lockout>);

namespace {

const store_options& checked(const store_options& options)
{
    if (options.deadline <= duration::zero())
        weir::detail::invalid("sqlite: deadline must be positive");
    if (options.keep < duration::zero()) weir::detail::invalid("sqlite: keep must not be negative");
    if (options.patience < duration::zero())
        weir::detail::invalid("sqlite: patience must not be negative");
    if (options.waiting == 0 || options.waiting > 1'000'000)
        weir::detail::invalid("sqlite: waiting is " + std::to_string(options.waiting) +
                              "; 1 to 1000000 is allowed");
    return options;
}

writer_options for_writer(const store_options& options)
{
    const auto patience = std::chrono::ceil<std::chrono::milliseconds>(options.patience);
    return {.where   = {.path        = options.path,
                        .survives    = options.survives,
                        .patience    = patience,
                        .fingerprint = remote::hash(options.secret, "weir: whose keys these are")},
            .keep    = options.keep,
            .waiting = options.waiting};
}

}  // namespace

instant system_time() noexcept
{
    return std::chrono::time_point_cast<duration>(std::chrono::system_clock::now());
}

store::store(const store_options& options)
    : options_(checked(options)), writer_(for_writer(options)), enrolled_(options.warn)
{
    if (options.warn == nullptr) return;
    if (options.secret.empty()) options.warn(warning::no_secret);
    if (writer_.secret_changed()) options.warn(warning::different_secrets);
}

store::~store() = default;

bool store::marked(std::int64_t mark, std::vector<remote::seen_row>& rows) const
{
    try {
        return connection(for_writer(options_).where).marked(mark, rows) == 0;
    } catch (const std::invalid_argument&) {
        return false;
    }
}

}  // namespace weir::sqlite
