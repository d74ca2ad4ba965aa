// What the shared stores keep in a Meta: the value of each key as bytes, and back. Pure.
//
// A value begins with the version of its form. A reader knows every version that was ever released;
// one that it does not know fails that value and no other.
#pragma once

#include <string>
#include <string_view>

#include "holdfast/session_store.h"
#include "holdfast/subscription_store.h"
#include "holdfast/task_store.h"
#include "journal/base/status.h"

namespace holdfast {

// A subscription; its epoch is the revision of its entry.
std::string EncodeSubscription(const Subscription& subscription);
// Errors, of all below: kUnimplemented  a newer version wrote it; upgrade this instance
//                       kDataLoss       it does not decode
StatusOr<Subscription> DecodeSubscription(std::string_view value);

// All but the id, which is in the key.
std::string EncodeAgent(const Agent& agent);
StatusOr<Agent> DecodeAgent(std::string_view id, std::string_view value);
std::string EncodeSession(const Session& session);
StatusOr<Session> DecodeSession(std::string_view id, std::string_view value);
std::string EncodeTask(const TaskRecord& task);
StatusOr<TaskRecord> DecodeTask(std::string_view id, std::string_view value);

}  // namespace holdfast
