// The simulated clients of the demo: channels that a dispatcher pushes to, and a thread that
// answers as the temper of each client says.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "holdfast/clock.h"
#include "holdfast/dispatcher.h"
#include "journal/base/mutex.h"
#include "journal/base/status.h"
#include "tools/demo_report.h"

namespace holdfast {

struct DemoClientsOptions {
  uint64_t seed = 1;
  std::vector<std::string> names;      // by number
  TellDemo tell;                       // of pushes and answers
  std::function<void(Status)> failed;  // nobody listens, or the journal has failed; any thread
};

// Threads: Start and Stop one, the dispatcher any.
class DemoClients {
 public:
  // Borrows the clock.
  DemoClients(Clock& clock, DemoClientsOptions options);
  // Needs: the dispatcher is gone
  ~DemoClients();

  // Connects every client. Borrows the dispatcher.
  void Start(Dispatcher& dispatcher);
  // Nothing is answered any more; comes before the end of the dispatcher. The outcome of what was
  // answered may still be told.
  void Stop();

 private:
  using Task = std::function<void()>;
  // A delivery as a client got it.
  struct Received {
    uint64_t client = 0;
    uint64_t connection = 0;  // over which it came
    uint64_t offset = 0;
    std::string id;
    uint64_t epoch = 0;
  };
  class Connection;

  void Take(const Received& received, const Delivery& delivery) ABSL_LOCKS_EXCLUDED(mu_);
  void Schedule(absl::Duration after, Task task) ABSL_LOCKS_EXCLUDED(mu_);
  // Blocks until a task is due; null once they are stopped.
  Task Next() ABSL_LOCKS_EXCLUDED(mu_);
  void Acknowledge(const Received& received) ABSL_LOCKS_EXCLUDED(mu_);
  void Refuse(const Received& received) ABSL_LOCKS_EXCLUDED(mu_);
  void Open(uint64_t client) ABSL_LOCKS_EXCLUDED(mu_);
  void Close(const Received& received, absl::Duration closed_for) ABSL_LOCKS_EXCLUDED(mu_);
  bool IsConnected(const Received& received) ABSL_LOCKS_EXCLUDED(mu_);
  void Tell(const DemoReport& report);

  Clock& clock_;
  const DemoClientsOptions options_;
  Dispatcher* dispatcher_ = nullptr;  // set before the thread starts
  Mutex mu_;                          // Never held across a call of the dispatcher.
  CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::multimap<absl::Duration, Task> tasks_ ABSL_GUARDED_BY(mu_);  // by when they are due
  std::vector<std::shared_ptr<Connection>> connections_ ABSL_GUARDED_BY(mu_);  // null: closed
  uint64_t connections_made_ ABSL_GUARDED_BY(mu_) = 0;
  std::thread thread_;
};

}  // namespace holdfast
