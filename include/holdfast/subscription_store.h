#pragma once

namespace holdfast {
class SubscriptionStore;
}  // namespace holdfast
