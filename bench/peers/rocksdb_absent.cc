#include "bench/peers/recovery_store.h"

namespace holdfast::bench {

std::vector<RecoveryKind> RocksDbKinds() { return {}; }

}  // namespace holdfast::bench
