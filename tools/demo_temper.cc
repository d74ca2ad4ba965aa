#include "tools/demo_temper.h"

#include <array>
#include <initializer_list>

#include "journal/base/seeded_rng.h"

namespace holdfast {
namespace {

constexpr std::array kTempers = {Temper::kFast, Temper::kSlow, Temper::kNacking, Temper::kDying,
                                 Temper::kPoison};
// One event in so many.
constexpr uint64_t kNackedOneIn = 4;
constexpr uint64_t kPoisonOneIn = 25;
// From one to the next: more than are open at once, so that no other event dies of them.
constexpr uint64_t kDeadlyEvery = 200;

constexpr absl::Duration kSlowDelayMax = absl::Milliseconds(40);  // half the timeout
constexpr absl::Duration kDyingDelayMax = absl::Milliseconds(10);
constexpr absl::Duration kClosedMin = absl::Milliseconds(5);
constexpr absl::Duration kClosedMax = absl::Milliseconds(25);

// What the seed says about the one thing that the numbers name.
SeededRng ChanceOf(uint64_t seed, std::initializer_list<uint64_t> numbers) {
  for (const uint64_t number : numbers) seed = SeededRng(seed).Next() ^ number;
  return SeededRng(seed);
}

absl::Duration Between(absl::Duration least, absl::Duration most, SeededRng& rng) {
  const auto span = static_cast<uint64_t>(absl::ToInt64Microseconds(most - least));
  return least + absl::Microseconds(static_cast<int64_t>(rng.Below(span + 1)));
}

}  // namespace

Temper TemperOf(uint64_t number) { return kTempers[number % kTempers.size()]; }

const char* TemperName(Temper temper) {
  switch (temper) {
    case Temper::kFast:
      return "fast";
    case Temper::kSlow:
      return "slow";
    case Temper::kNacking:
      return "nacking";
    case Temper::kDying:
      return "dying";
    case Temper::kPoison:
      break;
  }
  return "poison";
}

DemoReply ReplyTo(const DemoPush& push) {
  SeededRng of_client = ChanceOf(push.seed, {push.client});
  SeededRng of_event = ChanceOf(push.seed, {push.client, push.offset});
  SeededRng of_attempt = ChanceOf(push.seed, {push.client, push.offset, push.attempt});
  const bool is_first = push.attempt == 1;
  DemoReply reply;
  switch (TemperOf(push.client)) {
    case Temper::kFast:
      break;
    case Temper::kSlow:
      reply.after = Between(absl::ZeroDuration(), kSlowDelayMax, of_attempt);
      break;
    case Temper::kNacking:
      if (is_first && of_event.OneIn(kNackedOneIn)) reply.act = DemoReply::Act::kNack;
      break;
    case Temper::kDying:
      if (is_first && push.offset % kDeadlyEvery == of_client.Below(kDeadlyEvery)) {
        reply.act = DemoReply::Act::kClose;
        reply.closed_for = Between(kClosedMin, kClosedMax, of_attempt);
      } else {
        reply.after = Between(absl::ZeroDuration(), kDyingDelayMax, of_attempt);
      }
      break;
    case Temper::kPoison:
      if (of_event.OneIn(kPoisonOneIn)) reply.act = DemoReply::Act::kNothing;
      break;
  }
  return reply;
}

}  // namespace holdfast
