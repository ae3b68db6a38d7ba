// Runs the kept inputs of each target: seeds, and inputs that once found a fault.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/targets.h"

namespace holdfast::fuzz {

namespace fs = std::filesystem;

TEST_CASE("fuzz: the kept inputs of each target run without a fault") {
  const fs::path folder = "tests/fuzz";
  for (const Target& target : all_targets()) {
    DOCTEST_SUBCASE(std::string(target.name).c_str()) {
      std::vector<fs::path> files;
      for (const auto& file : fs::directory_iterator(folder / target.name)) files.push_back(file.path());
      std::ranges::sort(files);
      REQUIRE_FALSE(files.empty());
      for (const fs::path& path : files) {
        INFO(path.string());
        std::ifstream file(path, std::ios::binary);
        REQUIRE(file);
        target.run(std::string(std::istreambuf_iterator<char>(file), {}));
      }
    }
  }
}

}  // namespace holdfast::fuzz
