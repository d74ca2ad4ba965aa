#include "bench/floor.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <iterator>
#include <utility>

#include "bench/stopwatch.h"
#include "bench/written_file.h"
#include "journal/base/bytes.h"
#include "journal/base/checksum.h"

namespace holdfast::bench {
namespace {

constexpr size_t kBlockBytes = 4096;
constexpr size_t kGroupHeaderBytes = 64;
constexpr int64_t kRejoinNanos = 40'000;

// Writes the fields of a cycle as three records behind a batch header. Fixed-width integers,
// length-prefixed bytes: as plain as it gets, and as many bytes as the journal's own format takes.
class Writer {
 public:
  explicit Writer(std::byte* at) : begin_(at), at_(at) {}

  template <typename T>
  void Number(T value) {
    std::memcpy(at_, &value, sizeof value);
    at_ += sizeof value;
  }
  void Bytes(std::string_view bytes) {
    Number(static_cast<uint16_t>(bytes.size()));
    std::memcpy(at_, bytes.data(), bytes.size());
    at_ += bytes.size();
  }
  void Record(uint32_t type, size_t length) {
    Number(type);
    Number(static_cast<uint32_t>(length));
  }
  size_t size() const { return static_cast<size_t>(at_ - begin_); }

 private:
  std::byte* begin_;
  std::byte* at_;
};

constexpr size_t kBatchHeaderBytes = 32;
constexpr size_t kScratchBytes = size_t{64} << 10;

size_t EncodeCycle(const Cycle& cycle, std::byte* scratch) {
  const Delivery& put = cycle.put;
  Writer out(scratch + kBatchHeaderBytes);
  out.Record(5, put.id.size() + put.topic.size() + put.client.size() + put.event.size() + 50);
  out.Bytes(put.id);
  out.Bytes(put.topic);
  out.Bytes(put.client);
  out.Number(static_cast<uint32_t>(put.epoch));
  out.Number(static_cast<uint16_t>(put.partition));
  out.Number(put.offset.value_or(0));
  out.Number(static_cast<uint16_t>(put.attempt));
  out.Number(absl::ToInt64Nanoseconds(put.due));
  out.Number(absl::ToUnixNanos(put.created));
  out.Bytes(put.event);
  out.Record(7, cycle.remove_id.size() + put.client.size() + 10);
  out.Bytes(cycle.remove_id);
  out.Number(static_cast<uint32_t>(put.epoch));
  out.Bytes(put.client);
  out.Number(uint8_t{1});
  out.Record(1, cycle.offset.topic.size() + cycle.offset.client.size() + 14);
  out.Bytes(cycle.offset.topic);
  out.Bytes(cycle.offset.client);
  out.Number(static_cast<uint16_t>(cycle.offset.partition));
  out.Number(cycle.next);
  return AlignUp(kBatchHeaderBytes + out.size(), 8);
}

void Futex(std::atomic<uint32_t>& word, int operation, uint32_t value) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, nullptr, nullptr, 0);
}

}  // namespace

StatusOr<std::unique_ptr<Floor>> Floor::Open(const FloorOptions& options) {
  ASSIGN_OR_RETURN(int fd, OpenWrittenFile(options.ring_file, options.ring_bytes));
  return std::unique_ptr<Floor>(new Floor(fd, options));
}

Floor::Floor(int fd, const FloorOptions& options)
    : fd_(fd), options_(options), interval_nanos_(absl::ToInt64Nanoseconds(options.interval)) {
  {
    MutexLock lock(mu_);
    for (size_t count = 0; count < kBuffers; ++count) {
      Buffer buffer;
      buffer.bytes.reset(static_cast<std::byte*>(std::aligned_alloc(kBlockBytes, kBufferBytes)));
      std::memset(buffer.bytes.get(), 0, kBufferBytes);
      buffer.used = kGroupHeaderBytes;
      free_.push_back(std::move(buffer));
    }
    open_ = std::move(free_.back());
    free_.pop_back();
  }
  writer_ = std::thread([this] { WriteGroups(); });
}

Floor::~Floor() {
  (void)Close();  // A benchmark that is given up has nothing left to report it to.
  close(fd_);
}

Commit Floor::Run(const Cycle& cycle) {
  thread_local std::vector<std::byte> scratch(kScratchBytes);
  const size_t length = EncodeCycle(cycle, scratch.data());
  const uint64_t check =
      Checksum({scratch.data() + kBatchHeaderBytes, length - kBatchHeaderBytes}, cycle.next);
  std::memcpy(scratch.data() + 24, &check, sizeof check);

  mu_.Lock();
  std::byte* room = RoomFor(length);
  const uint64_t number = ++appended_;
  std::memcpy(scratch.data() + 8, &number, sizeof number);
  std::memcpy(room, scratch.data(), length);
  open_.last = number;
  maps_.Apply(cycle);
  const bool wake = writer_waits_ && (interval_nanos_ == 0 || !full_.empty());
  if (wake) writer_waits_ = false;
  mu_.Unlock();
  if (wake) work_.NotifyOne();
  return Commit(this, number, true);
}

// Room for a batch in the open buffer; waits for the writer when every buffer is full.
std::byte* Floor::RoomFor(size_t bytes) {
  if (open_.used + bytes > kBufferBytes) {
    while (free_.empty()) space_.Wait(mu_);
    // Another caller may have changed the open buffer meanwhile.
    if (open_.used + bytes > kBufferBytes) {
      full_.push_back(std::move(open_));
      open_ = std::move(free_.back());
      free_.pop_back();
    }
  }
  std::byte* room = open_.bytes.get() + open_.used;
  open_.used += bytes;
  return room;
}

void Floor::WriteGroups() {
  mu_.Lock();
  int64_t due = NowNanos() + interval_nanos_;
  while (AwaitWork(due)) {
    const bool flush = interval_nanos_ > 0 && (stop_ || NowNanos() >= due);
    if (interval_nanos_ == 0) AwaitRejoin();
    if ((flush || interval_nanos_ == 0) && open_.used > kGroupHeaderBytes && !free_.empty()) {
      full_.push_back(std::move(open_));
      open_ = std::move(free_.back());
      free_.pop_back();
    }
    bool ok = true;
    uint64_t last = synced_.load();
    while (!full_.empty() && ok) {
      Buffer buffer = std::move(full_.front());
      full_.pop_front();
      mu_.Unlock();
      ok = Write(buffer);
      last = buffer.last;
      buffer.used = kGroupHeaderBytes;
      mu_.Lock();
      free_.push_back(std::move(buffer));
      space_.NotifyAll();
    }
    if (flush) {
      mu_.Unlock();
      ok = ok && fdatasync(fd_) == 0;
      ++flushes_;
      mu_.Lock();
      due = NowNanos() + interval_nanos_;
    }
    if (flush || interval_nanos_ == 0 || !ok) Confirm(last, ok);
    if (!ok) break;
  }
  mu_.Unlock();
}

// False when there is nothing left to do for ever.
bool Floor::AwaitWork(int64_t due_nanos) {
  for (;;) {
    const bool some = !full_.empty() || open_.used > kGroupHeaderBytes;
    if (stop_) return some;
    if (interval_nanos_ == 0) {
      if (some) return true;
      writer_waits_ = true;
      work_.Wait(mu_);
    } else {
      const int64_t left = due_nanos - NowNanos();
      if (!full_.empty() || left <= 0) return true;
      writer_waits_ = true;
      work_.WaitFor(mu_, absl::Nanoseconds(left));
    }
    writer_waits_ = false;
  }
}

// A group holds as many callers as come before it closes: those just released come back at once.
void Floor::AwaitRejoin() {
  const int64_t until = NowNanos() + kRejoinNanos;
  while (appended_ < rejoin_at_ && !stop_ && NowNanos() < until) {
    mu_.Unlock();
    sched_yield();
    mu_.Lock();
  }
}

bool Floor::Write(Buffer& buffer) {
  const size_t length = AlignUp(buffer.used, kBlockBytes);
  std::memset(buffer.bytes.get() + buffer.used, 0, length - buffer.used);
  const uint64_t check = Checksum({buffer.bytes.get(), kGroupHeaderBytes - 8}, buffer.last);
  std::memcpy(buffer.bytes.get() + kGroupHeaderBytes - 8, &check, sizeof check);
  if (ring_offset_ + length > options_.ring_bytes) ring_offset_ = 0;
  size_t done = 0;
  while (done < length) {
    const iovec piece{buffer.bytes.get() + done, length - done};
    const ssize_t count = pwritev2(fd_, &piece, 1, static_cast<off_t>(ring_offset_ + done),
                                   interval_nanos_ == 0 ? RWF_DSYNC : 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<size_t>(count);
    if (interval_nanos_ == 0) ++flushes_;
  }
  ring_offset_ += length;
  written_bytes_ += length;
  return true;
}

void Floor::Confirm(uint64_t number, bool ok) {
  const uint64_t released = number - synced_.load();
  if (ok) synced_.store(number);
  failed_.store(!ok);
  rejoin_at_ = appended_ + released;
  std::vector<Waiter> due;
  while (!callbacks_.empty() && (!ok || callbacks_.front().number <= number)) {
    due.push_back(std::move(callbacks_.front()));
    callbacks_.pop_front();
  }
  mu_.Unlock();
  generation_.fetch_add(1);
  Futex(generation_, FUTEX_WAKE_PRIVATE, INT_MAX);
  for (const Waiter& waiter : due) {
    waiter.callback(ok ? absl::OkStatus() : Unavailable(Detail::kPoisoned, "floor: write failed"));
  }
  mu_.Lock();
}

Status Floor::WaitFor(uint64_t number) {
  while (synced_.load() < number) {
    if (failed_.load()) return Unavailable(Detail::kPoisoned, "floor: a write failed");
    const uint32_t generation = generation_.load();
    if (synced_.load() >= number || failed_.load()) continue;
    Futex(generation_, FUTEX_WAIT_PRIVATE, generation);
  }
  return absl::OkStatus();
}

void Floor::CallWhenReached(uint64_t number, std::function<void(Status)> callback) {
  mu_.Lock();
  if (synced_.load() < number) {
    // Callers register in their own order; the writer looks from the front, and the numbers of two
    // threads are at most a moment apart.
    auto place = callbacks_.end();
    while (place != callbacks_.begin() && std::prev(place)->number > number) --place;
    callbacks_.insert(place, Waiter{number, std::move(callback)});
    mu_.Unlock();
    return;
  }
  mu_.Unlock();
  callback(absl::OkStatus());
}

Status Floor::Close() {
  {
    MutexLock lock(mu_);
    stop_ = true;
  }
  work_.NotifyAll();
  if (writer_.joinable()) writer_.join();
  if (failed_.load()) return Unavailable(Detail::kPoisoned, "floor: a write failed");
  return absl::OkStatus();
}

}  // namespace holdfast::bench
