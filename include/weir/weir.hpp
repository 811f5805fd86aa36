// SPDX-License-Identifier: BSL-1.0
#pragma once

// The core in one include: policies, the stores of one process, limiters, sets, client addresses.

#include "weir/admit_all.hpp"
#include "weir/decision.hpp"
#include "weir/extract/client_ip.hpp"
#include "weir/extract/cookie.hpp"
#include "weir/extract/header.hpp"
#include "weir/extract/query.hpp"
#include "weir/inflight.hpp"
#include "weir/key.hpp"
#include "weir/limiter.hpp"
#include "weir/policy/fixed_window.hpp"
#include "weir/policy/gcra.hpp"
#include "weir/policy/sliding_window.hpp"
#include "weir/store/memory.hpp"
#include "weir/store/sketch.hpp"
#include "weir/time.hpp"
