#include "tools/demo_tables.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

TEST(DemoTablesTest, EachClientIsNamed) {
  const std::string table =
      ClientsTable({{.acked = 11, .pushes = 15, .duplicates = 4}, {.dead_letters = 7}});
  EXPECT_NE(table.find("| fast-1       |        11 |            0 |        15 |          4 |\n"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("| slow-2       |         0 |            7 |         0 |          0 |\n"),
            std::string::npos)
      << table;
}

TEST(DemoTablesTest, RunsAreComparedWithTheFirst) {
  const DemoWork work{.events = {"a", "b"}, .repeat = 50, .clients = 3};
  const std::string table = TimesTable(
      work, {{"in memory", absl::Seconds(1)}, {"on disk", absl::Seconds(4)}, {"none", {}}});
  EXPECT_NE(table.find("1.000 |        100 |          300 |     1.000 |\n"), std::string::npos)
      << table;
  EXPECT_NE(table.find("4.000 |         25 |           75 |     0.250 |\n"), std::string::npos)
      << table;
}

}  // namespace
}  // namespace holdfast
