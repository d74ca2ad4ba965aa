// A store as a dispatcher leaves it and the reports of a child, for the tests of the demo's audit.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>

#include "tests/support/status_matchers.h"
#include "tools/demo_audit.h"
#include "tools/demo_temper.h"

namespace holdfast {

class DemoAuditTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(store_, Engine::Open({.backend = Backend::kMemory}));
  }
  static std::string Client(uint64_t client) { return DemoWork::ClientName(client); }
  static SourceKey Source() { return {DemoWork::kTopic, DemoWork::kIncarnation, 0}; }

  // --- What a dispatcher does in the store ---

  void Change(const std::function<void(Transaction&)>& fill) {
    ASSERT_OK(store_->Transact(fill).Wait());
  }
  // Event `offset` for the first client under "A<offset>", for the second under "B<offset>".
  void Put(uint64_t offset) {
    PutFor(0, "A" + std::to_string(offset), offset, work_.EventAt(offset));
    PutFor(1, "B" + std::to_string(offset), offset, work_.EventAt(offset));
  }
  void PutFor(uint64_t client, const std::string& id, uint64_t offset, const std::string& event) {
    Delivery delivery;
    delivery.id = id;
    delivery.topic = DemoWork::kTopic;
    delivery.incarnation = DemoWork::kIncarnation;
    delivery.offset = offset;
    delivery.client = Client(client);
    delivery.event = event;
    Change([&](Transaction& change) {
      change.PutDelivery(delivery);
      change.SourceSeen(Source(), offset);
    });
  }
  void Remove(const std::string& id) {
    Change([&](Transaction& change) { change.RemoveDelivery(id, Reason::kAcked); });
  }
  void Commit(uint64_t client, uint64_t next) {
    Change([&](Transaction& change) {
      change.WriteOffset({DemoWork::kTopic, Client(client), 0},
                         OffsetPosition(next, DemoWork::kIncarnation));
    });
  }
  void RaiseCursor(uint64_t cursor) {
    Change([&](Transaction& change) { change.SourceCursor(Source(), cursor); });
  }
  void GiveUp(uint64_t client, const std::string& id, uint64_t offset,
              uint32_t attempts = kDemoAttemptsMax, const std::string& event = "") {
    DeadLetter letter;
    letter.delivery_id = id;
    letter.attempts = attempts;
    letter.topic = DemoWork::kTopic;
    letter.offset = offset;
    letter.client = Client(client);
    letter.event = event.empty() ? work_.EventAt(offset) : event;
    Change([&](Transaction& change) {
      change.RecordDeadLetter(letter);
      change.RemoveDelivery(id, Reason::kDeadLettered);
    });
  }

  // --- What a child tells ---

  void Told(DemoStep step, const std::string& id, uint64_t offset) {
    audit_.Take({.step = step, .id = id, .client = id.front() == 'A' ? 0u : 1u, .offset = offset});
  }
  void Pushed(const std::string& id, uint64_t offset, uint32_t attempt = 1) {
    audit_.Take({.step = DemoStep::kPush,
                 .id = id,
                 .client = id.front() == 'A' ? 0u : 1u,
                 .offset = offset,
                 .attempt = attempt,
                 .checksum = DemoChecksum(work_.EventAt(offset))});
  }
  void Acked(const std::string& id, uint64_t offset) {
    Pushed(id, offset);
    Told(DemoStep::kTry, id, offset);
    Told(DemoStep::kAck, id, offset);
  }
  void SourceTold(uint64_t offset) { audit_.Take({.step = DemoStep::kTold, .offset = offset}); }

  // Both clients have acknowledged event 0, and the store knows.
  void FinishEventZero() {
    Put(0);
    for (const char* id : {"A0", "B0"}) {
      Told(DemoStep::kPut, id, 0);
      Acked(id, 0);
      Remove(id);
    }
    SourceTold(0);
    Commit(0, 1);
    Commit(1, 1);
  }

  DemoAudit::Round Compare() {
    auto round = audit_.Compare(*store_);
    EXPECT_OK(round);
    return round.ok() ? *round : DemoAudit::Round{.offsets = {0, 0}};
  }
  void ExpectFinding(const std::string& text) {
    const auto& shown = audit_.findings().shown();
    EXPECT_TRUE(std::ranges::any_of(
        shown, [&](const std::string& finding) { return finding.find(text) != std::string::npos; }))
        << text << " is not in " << testing::PrintToString(shown);
  }
  void ExpectNoFinding() {
    EXPECT_EQ(audit_.findings().total(), 0U) << testing::PrintToString(audit_.findings().shown());
  }

  const DemoWork work_{.events = {"first", "second"}, .repeat = 1, .clients = 2};
  std::unique_ptr<Engine> store_;
  DemoAudit audit_{work_};
};

}  // namespace holdfast
