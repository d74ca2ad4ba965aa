// What somebody may have meant who typed a name that there is not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

// The name that `word` begins or that it misses by the fewest slips: a letter too much, too few, or
// wrong, or two swapped. Empty: none is near (more than two slips, or a third of the word).
std::string NearestName(std::string_view word, const std::vector<std::string>& names);

}  // namespace holdfast
