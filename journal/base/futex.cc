#include "journal/base/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace holdfast {
namespace {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
static_assert(std::atomic<uint32_t>::is_always_lock_free);

// The result says only why a wait ended; the word says whether it should have.
void Futex(std::atomic<uint32_t>& word, int operation, uint32_t value) {
  syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

}  // namespace

void FutexWait(std::atomic<uint32_t>& word, uint32_t expected) {
  Futex(word, FUTEX_WAIT, expected);
}
void FutexWakeOne(std::atomic<uint32_t>& word) { Futex(word, FUTEX_WAKE, 1); }
void FutexWakeAll(std::atomic<uint32_t>& word) { Futex(word, FUTEX_WAKE, INT_MAX); }

}  // namespace holdfast
