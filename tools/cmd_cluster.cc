// `holdfast cluster`: who is in a cluster, and whose each partition is, as its Meta has it.
#include <memory>

#include "holdfast/store_factory.h"
#include "meta/membership.h"
#include "tools/command.h"
#include "tools/value_printer.h"

namespace holdfast {
namespace {

constexpr std::string_view kCommand = "cluster";

Status Show(const ClusterCommand& options, Console& console) {
  // The stores bring the connection; nothing is written over it.
  ASSIGN_OR_RETURN(const SharedStores shared,
                   MakeSharedStores({.backend = SharedBackend::kRemoteMeta,
                                     .meta_endpoints = options.meta,
                                     .meta_user = options.user,
                                     .meta_password = options.password},
                                    console.clock));
  const ValueForm form{.json = options.json};
  ASSIGN_OR_RETURN(const Roster roster, ReadRoster(*shared.meta));
  for (const Instance& instance : roster.instances) console.out << InstanceLine(instance, form);
  for (const Assignment& each : roster.assignments) console.out << AssignmentLine(each, form);
  return absl::OkStatus();
}

}  // namespace

int RunCluster(const ClusterCommand& options, Console& console) {
  const Status shown = Show(options, console);
  return shown.ok() ? kExitOk : Fail(console, kCommand, shown);
}

}  // namespace holdfast
