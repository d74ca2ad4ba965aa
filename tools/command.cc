#include "tools/command.h"

#include <variant>

#include "tools/cli.h"

namespace holdfast {
namespace {

struct Runner {
  Console& console;
  int operator()(const InspectCommand& options) const { return RunInspect(options, console); }
  int operator()(const DumpCommand& options) const { return RunDump(options, console); }
  int operator()(const VerifyCommand& options) const { return RunVerify(options, console); }
  int operator()(const GetCommand& options) const { return RunGet(options, console); }
  int operator()(const ListCommand& options) const { return RunList(options, console); }
  int operator()(const RepairCommand& options) const { return RunRepair(options, console); }
  int operator()(const MaintenanceCommand& options) const {
    return (options.kind == MaintenanceCommand::Kind::kCompact ? RunCompact : RunCheckpoint)(
        options, console);
  }
  int operator()(const DlqCommand& options) const { return RunDlq(options, console); }
  int operator()(const WorkloadCommand& options) const { return RunWorkload(options, console); }
  int operator()(const CheckCommand& options) const { return RunCheck(options, console); }
  int operator()(const DemoCommand& options) const { return RunDemo(options, console); }
  int operator()(const MetaServerCommand& options) const { return RunMetaServer(options, console); }
  int operator()(const ClusterCommand& options) const { return RunCluster(options, console); }
};

}  // namespace

int RunHoldfast(const std::vector<std::string>& arguments, Console& console) {
  const std::variant<AnyCommand, CommandLineAnswer> parsed = ParseCommandLine(arguments);
  int exit_code = kExitOk;
  if (const auto* answer = std::get_if<CommandLineAnswer>(&parsed)) {
    console.out << answer->out;
    console.err << answer->err;
    exit_code = answer->exit_code;
  } else {
    exit_code = std::visit(Runner{console}, std::get<AnyCommand>(parsed));
  }
  if (console.out.flush()) return exit_code;
  console.err << "holdfast: the results could not be written\n";
  return kExitUsageOrIo;
}

int Fail(Console& console, std::string_view command, const Status& status) {
  Complain(console, command, Message(status));
  return status.code() == StatusCode::kDataLoss ? kExitFault : kExitUsageOrIo;
}

}  // namespace holdfast
