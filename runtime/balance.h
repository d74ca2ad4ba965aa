// Balance: which instance each partition should have. Pure: the same picture gives the same plan,
// whoever makes it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "holdfast/offset_store.h"

namespace holdfast {

// Who has each partition, or had it last; empty: nobody.
using Holdings = std::map<SourceKey, std::string>;

// The instance of each partition; none if no instance lives. Shares differ by one at most, and no
// partition moves that need not: one stays where it is as long as that instance lives and has no
// more than its share. `instances`: those that live, in any order, each once.
Holdings Balance(const std::vector<std::string>& instances, const Holdings& now);

}  // namespace holdfast
