// Ten thousand watches that hear nothing, each on a connection of its own, of a client in a process
// of its own.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "journal/base/json.h"
#include "tests/kill/meta_server.h"
#include "tests/support/raw_socket.h"
#include "tests/support/sanitized.h"

namespace holdfast {
namespace {

constexpr size_t kWatches = 10'000;

// A number of /proc/<pid>/status; for memory in KiB.
uint64_t StatusOf(pid_t pid, std::string_view field) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with(std::string(field) + ":")) {
      return std::stoull(line.substr(field.size() + 1));
    }
  }
  return 0;
}

void AllowFiles() {
  rlimit files{};
  CHECK(getrlimit(RLIMIT_NOFILE, &files) == 0);
  files.rlim_cur = files.rlim_max;
  CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
}

RawSocket OpenWatch(uint16_t port, const std::string& key) {
  RawSocket socket = RawSocket::Connect(port);
  const std::string body = R"({"create_request":{"key":")" + Base64(key) + R"("}})";
  CHECK(socket.Send("POST /v3/watch HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                    std::to_string(body.size()) + "\r\n\r\n" + body));
  return socket;
}

// The child: opens all, says so, and waits for the last one to hear something.
[[noreturn]] void Watch(uint16_t port, int say) {
  AllowFiles();
  std::vector<RawSocket> sockets;
  for (size_t i = 0; i < kWatches; ++i) {
    sockets.push_back(OpenWatch(port, "key-" + std::to_string(i)));
    if (sockets.back().ReadUntil("\"created\":true").empty()) _exit(1);
    (void)sockets.back().ReadUntil("\n");  // the rest of the line
  }
  if (write(say, "o", 1) != 1) _exit(2);
  if (sockets.back().ReadUntil("\"kv\"").empty()) _exit(3);
  for (size_t i = 0; i + 1 < kWatches; ++i) {
    // What is left of the chunk that told of the creation.
    while (sockets[i].Ready()) {
      if (sockets[i].ReadSome().find("\"kv\"") != std::string::npos) _exit(4);
    }
  }
  if (write(say, "k", 1) != 1) _exit(5);
  _exit(0);
}

// Proves: S1
TEST(MetaServerWatchesTest, TenThousandIdleWatchesCostNoThreadAndLittleMemory) {
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  ASSERT_GT(files.rlim_max, kWatches + 100) << "the limit of open files is too low for this test";
  AllowFiles();
  MetaServer meta;  // inherits the limit
  const pid_t server = meta.process().pid();
  // One watch, so that whatever a first one starts is there.
  RawSocket first = OpenWatch(meta.endpoint().port, "first");
  ASSERT_FALSE(first.ReadUntil("\"created\":true").empty());
  const uint64_t threads = StatusOf(server, "Threads");

  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t client = fork();
  ASSERT_GE(client, 0);
  if (client == 0) Watch(meta.endpoint().port, ends[1]);
  close(ends[1]);
  char heard = 0;
  ASSERT_EQ(read(ends[0], &heard, 1), 1);
  EXPECT_EQ(StatusOf(server, "Threads"), threads);
  const uint64_t resident = StatusOf(server, "VmRSS");
  EXPECT_GT(resident, 0u);
  if (!kSanitized) {
    EXPECT_LT(resident, 100u * 1'000) << "KiB";
  }
  // They are alive, and only who is meant hears.
  ASSERT_OK(meta.store().Put("key-" + std::to_string(kWatches - 1), "v", {}));
  EXPECT_EQ(read(ends[0], &heard, 1), 1);
  close(ends[0]);
  int status = 0;
  ASSERT_EQ(waitpid(client, &status, 0), client);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace holdfast
