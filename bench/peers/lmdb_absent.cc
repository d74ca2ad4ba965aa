#include "bench/peers/recovery_store.h"

namespace holdfast::bench {

std::vector<RecoveryKind> LmdbKinds() { return {}; }

}  // namespace holdfast::bench
