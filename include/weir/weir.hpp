// SPDX-License-Identifier: BSL-1.0
#pragma once

// The core in one include: policies, the in-process stores, limiters, sets, occupancy.

#include "weir/admit_all.hpp"
#include "weir/decision.hpp"
#include "weir/key.hpp"
#include "weir/limiter.hpp"
#include "weir/policy/fixed_window.hpp"
#include "weir/policy/gcra.hpp"
#include "weir/policy/sliding_window.hpp"
#include "weir/store/memory.hpp"
#include "weir/time.hpp"
