#include "tools/demo_clients.h"

#include <utility>

#include "journal/base/check.h"
#include "tools/demo_temper.h"

namespace holdfast {

class DemoClients::Connection final : public Channel {
 public:
  Connection(DemoClients& clients, uint64_t client, uint64_t number)
      : clients_(clients), client_(client), number_(number) {}
  uint64_t number() const { return number_; }
  void Push(const Delivery& delivery) override {
    clients_.Take({.client = client_,
                   .connection = number_,
                   .offset = delivery.offset.value_or(0),
                   .id = delivery.id,
                   .epoch = delivery.epoch},
                  delivery);
  }

 private:
  DemoClients& clients_;
  const uint64_t client_;
  const uint64_t number_;
};

DemoClients::DemoClients(Clock& clock, DemoClientsOptions options)
    : clock_(clock), options_(std::move(options)), connections_(options_.names.size()) {}

DemoClients::~DemoClients() { Stop(); }

void DemoClients::Start(Dispatcher& dispatcher) {
  CHECK(dispatcher_ == nullptr);
  dispatcher_ = &dispatcher;
  for (uint64_t client = 0; client < options_.names.size(); ++client) Open(client);
  thread_ = std::thread([this] {
    while (const Task task = Next()) task();
  });
}

void DemoClients::Stop() {
  {
    MutexLock lock(mu_);
    stopped_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void DemoClients::Take(const Received& received, const Delivery& delivery) {
  Tell({.step = DemoStep::kPush,
        .id = received.id,
        .client = received.client,
        .offset = received.offset,
        .attempt = delivery.attempt,
        .checksum = DemoChecksum(delivery.event)});
  const DemoReply reply = ReplyTo({.seed = options_.seed,
                                   .client = received.client,
                                   .offset = received.offset,
                                   .attempt = delivery.attempt});
  switch (reply.act) {
    case DemoReply::Act::kAck:
      return Schedule(reply.after, [this, received] { Acknowledge(received); });
    case DemoReply::Act::kNack:
      return Schedule(reply.after, [this, received] { Refuse(received); });
    case DemoReply::Act::kClose:
      return Schedule(reply.after,
                      [this, received, away = reply.closed_for] { Close(received, away); });
    case DemoReply::Act::kNothing:
      return;
  }
}

void DemoClients::Schedule(absl::Duration after, Task task) {
  MutexLock lock(mu_);
  tasks_.emplace(clock_.Now() + after, std::move(task));
  changed_.NotifyAll();
}

DemoClients::Task DemoClients::Next() {
  MutexLock lock(mu_);
  while (!stopped_) {
    const auto first = tasks_.begin();
    if (first == tasks_.end()) {
      changed_.Wait(mu_);
    } else if (first->first <= clock_.Now()) {
      return std::move(tasks_.extract(first).mapped());
    } else {
      changed_.WaitFor(mu_, clock_.Until(first->first));
    }
  }
  return nullptr;
}

void DemoClients::Acknowledge(const Received& received) {
  if (!IsConnected(received)) return;
  DemoReport report{.step = DemoStep::kTry,
                    .id = received.id,
                    .client = received.client,
                    .offset = received.offset};
  Tell(report);
  dispatcher_->Ack(
      {.id = received.id, .client = options_.names[received.client], .epoch = received.epoch},
      [this, report](const Status& outcome) mutable {
        if (outcome.code() == StatusCode::kUnavailable) return options_.failed(outcome);
        report.step = outcome.ok() ? DemoStep::kAck : DemoStep::kRefuse;
        Tell(report);
      });
}

void DemoClients::Refuse(const Received& received) {
  if (!IsConnected(received)) return;
  (void)dispatcher_->Nack(  // One that comes too late changes nothing.
      {.id = received.id, .client = options_.names[received.client], .epoch = received.epoch});
}

void DemoClients::Open(uint64_t client) {
  std::shared_ptr<Connection> connection;
  {
    MutexLock lock(mu_);
    connection = std::make_shared<Connection>(*this, client, ++connections_made_);
    connections_[client] = connection;
  }
  dispatcher_->ChannelOpened(options_.names[client], std::move(connection));
}

// What came over it and is not answered yet will not be.
void DemoClients::Close(const Received& received, absl::Duration closed_for) {
  if (!IsConnected(received)) return;
  std::shared_ptr<Connection> connection;
  {
    MutexLock lock(mu_);
    connection = std::exchange(connections_[received.client], nullptr);
  }
  dispatcher_->ChannelClosed(options_.names[received.client], connection.get());
  Schedule(closed_for, [this, client = received.client] { Open(client); });
}

bool DemoClients::IsConnected(const Received& received) {
  MutexLock lock(mu_);
  const std::shared_ptr<Connection>& open = connections_[received.client];
  return open != nullptr && open->number() == received.connection;
}

void DemoClients::Tell(const DemoReport& report) {
  if (const Status told = options_.tell(report); !told.ok()) options_.failed(told);
}

}  // namespace holdfast
