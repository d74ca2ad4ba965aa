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

TEST(EndpointTest, AnUrlSaysWhetherItIsOverTls) {
  for (const char* url : {"http://127.0.0.1:2379", "https://etcd-1.local:443", "https://[::1]:1"}) {
    const StatusOr<HttpEndpoint> endpoint = ParseEndpointUrl(url);
    ASSERT_TRUE(endpoint.ok()) << url << ": " << endpoint.status();
    EXPECT_EQ(endpoint->tls, std::string_view(url).starts_with("https"));
    EXPECT_EQ(EndpointUrl(*endpoint), url);
    EXPECT_EQ(*ParseEndpointUrl(std::string(url) + "/"), *endpoint);
  }
  for (const char* text : {"", "host:80", "ftp://host:80", "https://", "https://host",
                           "https:/host:80", "HTTPS://host:80", "https://host:80/v3"}) {
    EXPECT_FALSE(ParseEndpointUrl(text).ok()) << text;
  }
}

TEST(EndpointTest, ANumericAddressIsToldFromAName) {
  for (const char* host : {"127.0.0.1", "0.0.0.0", "::", "::1", "fe80::1"}) {
    EXPECT_TRUE(IsNumericAddress(host)) << host;
  }
  for (const char* host : {"", "localhost", "127.1", "256.0.0.1", "1.2.3.4.5", "::g"}) {
    EXPECT_FALSE(IsNumericAddress(host)) << host;
  }
}

}  // namespace
}  // namespace holdfast
