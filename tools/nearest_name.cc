#include "tools/nearest_name.h"

#include <algorithm>

namespace holdfast {
namespace {

constexpr size_t kSlipsMax = 2;
constexpr size_t kWordBytesMax = 64;  // longer is no slip of a name

// Edit distance where a swap of two neighbours counts once.
size_t Slips(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> slips(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        slips[i][j] = i + j;
        continue;
      }
      const size_t wrong = a[i - 1] == b[j - 1] ? 0 : 1;
      slips[i][j] =
          std::min({slips[i - 1][j] + 1, slips[i][j - 1] + 1, slips[i - 1][j - 1] + wrong});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        slips[i][j] = std::min(slips[i][j], slips[i - 2][j - 2] + 1);
      }
    }
  }
  return slips[a.size()][b.size()];
}

}  // namespace

std::string NearestName(std::string_view word, const std::vector<std::string>& names) {
  if (word.empty() || word.size() > kWordBytesMax) return "";
  std::string nearest;
  size_t fewest = std::min(kSlipsMax, std::max(size_t{1}, word.size() / 3)) + 1;
  for (const std::string& name : names) {
    const size_t slips = word.size() > 1 && name.starts_with(word) ? 0 : Slips(word, name);
    if (slips >= fewest) continue;
    fewest = slips;
    nearest = name;
  }
  return nearest;
}

}  // namespace holdfast
