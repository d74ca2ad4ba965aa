// What EngineOptions may hold, checked before anything is touched.
#pragma once

#include "holdfast/options.h"
#include "journal/base/status.h"
#include "stores/store_limits.h"

namespace holdfast {

// Errors: kInvalidArgument  naming the option, its value and its range
Status CheckEngineOptions(const EngineOptions& options);

StoreLimits LimitsOf(const EngineOptions& options);

const char* DurabilityName(Durability durability);

}  // namespace holdfast
