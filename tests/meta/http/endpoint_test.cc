#include <gtest/gtest.h>

#include "meta/http/transport.h"

namespace holdfast {
namespace {

TEST(EndpointTest, ReadsWhatItWrites) {
  for (const char* text : {"127.0.0.1:2379", "etcd-1.local:80", "[::1]:65535"}) {
    const StatusOr<HttpEndpoint> endpoint = ParseEndpoint(text);
    ASSERT_TRUE(endpoint.ok()) << text << ": " << endpoint.status();
    EXPECT_EQ(EndpointText(*endpoint), text);
  }
}

TEST(EndpointTest, RefusesWhatIsNone) {
  for (const char* text :
       {"", "host", ":80", "host:", "host:http", "host:65536", "host:-1", "::1:80", "a b:80",
        "[::1:80", "host:80 ", "http://host:80", "ho\nst:1"}) {
    EXPECT_FALSE(ParseEndpoint(text).ok()) << text;
  }
}

}  // namespace
}  // namespace holdfast
