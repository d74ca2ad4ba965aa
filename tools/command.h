// The commands of the `holdfast` tool as functions, for its main, for hosts and for tests.
#pragma once

#include <string>
#include <vector>

#include "journal/base/status.h"
#include "tools/console.h"
#include "tools/options.h"

namespace holdfast {

// What a command returns to its shell.
enum ExitCode : int {
  kExitOk = 0,
  kExitTornTail = 1,   // the store ends in what its killed writer never confirmed
  kExitFault = 2,      // damage, or an audit found a fault
  kExitUsageOrIo = 3,  // wrong call, or the store could not be read or written
  kExitNotFound = 4,
};

// Parses `arguments` (without the program's name) and runs the command.
// Threads: one command at a time per Console.
int RunHoldfast(const std::vector<std::string>& arguments, Console& console);

// One command each, in the file of its name. They answer with an exit code and have told why.
int RunInspect(const InspectCommand& options, Console& console);
int RunDump(const DumpCommand& options, Console& console);
int RunVerify(const VerifyCommand& options, Console& console);
int RunGet(const GetCommand& options, Console& console);
int RunList(const ListCommand& options, Console& console);
int RunRepair(const RepairCommand& options, Console& console);
int RunCheckpoint(const MaintenanceCommand& options, Console& console);
int RunCompact(const MaintenanceCommand& options, Console& console);
int RunDlq(const DlqCommand& options, Console& console);
int RunWorkload(const WorkloadCommand& options, Console& console);
int RunCheck(const CheckCommand& options, Console& console);
int RunDemo(const DemoCommand& options, Console& console);
int RunMetaServer(const MetaServerCommand& options, Console& console);
int RunCluster(const ClusterCommand& options, Console& console);

// Tells `status` on the message stream and returns the exit code that goes with it: kExitFault for
// damage, kExitUsageOrIo for everything else.
int Fail(Console& console, std::string_view command, const Status& status);

}  // namespace holdfast
