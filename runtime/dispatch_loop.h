// DispatchLoop: the dispatcher as hosts see it, and its thread: a tick now and then.
#pragma once

#include <thread>

#include "holdfast/dispatcher.h"
#include "journal/base/mutex.h"
#include "runtime/dispatcher.h"

namespace holdfast {

// Errors: kInvalidArgument  an option is out of range; the message names it
Status CheckOptions(const DispatcherOptions& options);

class DispatchLoop final : public Dispatcher {
 public:
  DispatchLoop(Engine& engine, Rng& rng, const DispatcherOptions& options,
               const DispatcherHost& host);
  ~DispatchLoop() override;

  Status Recover() override { return core_.Recover(); }
  Status LetGo(const SourceKey& source) override { return core_.LetGo(source); }
  Status Adopt(const SourceKey& source, std::optional<uint64_t> handed_in_before) override {
    return core_.Adopt(source, handed_in_before);
  }
  void Start() override;
  StatusOr<DeliverResult> Deliver(const SourceEvent& event,
                                  const std::vector<Target>& targets) override {
    return core_.Deliver(event, targets);
  }
  void Ack(const Acknowledgement& ack, std::function<void(Status)> done) override {
    core_.Ack(ack, std::move(done));
  }
  Status Nack(const Acknowledgement& nack) override { return core_.Nack(nack); }
  void Withdraw(std::string_view id, std::function<void(Status)> done) override {
    core_.Withdraw(id, std::move(done));
  }
  void Resubscribe(const Resubscription& to, std::function<void(Status)> done) override {
    core_.Resubscribe(to, std::move(done));
  }
  void ChannelOpened(std::string_view client, std::shared_ptr<Channel> channel) override {
    core_.ChannelOpened(client, std::move(channel));
  }
  void ChannelClosed(std::string_view client, const Channel* channel) override {
    core_.ChannelClosed(client, channel);
  }
  void Tick() override { core_.Tick(); }
  uint64_t Pending(std::string_view client) override { return core_.Pending(client); }
  StatusOr<std::vector<PendingDelivery>> Pending(const PendingFilter& filter) override {
    return core_.Pending(filter);
  }
  DispatcherStats Stats() override { return core_.Stats(); }

 private:
  void Loop();

  const absl::Duration tick_interval_;
  Clock& clock_;
  DispatcherCore core_;
  Mutex mu_;
  CondVar wake_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace holdfast
