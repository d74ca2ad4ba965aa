#include "journal/state_machine.h"

namespace holdfast {

void StateMachines::Apply(const AnyRecord& record, Lsn lsn, const RecordRef& ref) const {
  const RecordType type = std::visit([](const auto& known) { return known.kType; }, record);
  StateMachine* machine = For(type);
  CHECK(machine != nullptr);
  machine->Apply(record, lsn, ref);
}

}  // namespace holdfast
