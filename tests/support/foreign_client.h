// Runs a script of a foreign client against a server.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "journal/base/check.h"
#include "meta/http/transport.h"
#include "tests/support/environment.h"

namespace holdfast {

// The script that the environment variable names, run by `program` with the address and whatever
// else; returns what it printed on both streams, and fails the test unless it ends well.
inline std::string RunForeignClient(const std::string& program, const char* variable,
                                    const HttpEndpoint& endpoint, const std::string& more = "") {
  const std::string script = TextFromEnvironment(variable);
  EXPECT_NE(script, "") << variable << " names no script";
  const std::string command =
      fmt::format("{} {} {} {} {} 2>&1", program, script, endpoint.host, endpoint.port, more);
  FILE* const output = popen(command.c_str(), "r");
  CHECK(output != nullptr);
  std::string text;
  char bytes[4096];
  for (size_t got; (got = fread(bytes, 1, sizeof bytes, output)) > 0;) text.append(bytes, got);
  EXPECT_EQ(pclose(output), 0) << text;
  return text;
}

// In Debian's own Python.
inline std::string RunPythonClient(const char* variable, const HttpEndpoint& endpoint) {
  return RunForeignClient("/usr/bin/python3", variable, endpoint);
}

}  // namespace holdfast
