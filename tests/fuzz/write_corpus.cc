// write_corpus DIR: the inputs that the targets start from, one folder for each.
#include <filesystem>
#include <fstream>

#include "tests/fuzz/targets.h"

int main(int argc, char** argv) {
  if (argc != 2) return 3;
  for (const holdfast::FuzzTarget& target : holdfast::FuzzTargets()) {
    const std::filesystem::path folder = std::filesystem::path(argv[1]) / target.name;
    std::filesystem::create_directories(folder);
    size_t number = 0;
    for (const std::string& input : target.corpus()) {
      std::ofstream(folder / std::to_string(number++), std::ios::binary) << input;
    }
  }
  std::ofstream(std::filesystem::path(argv[1]) / "written") << "corpus\n";
  return 0;
}
