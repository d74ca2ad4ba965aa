// Futex: sleep until a word changes. What std::atomic::wait does, without its rounds of sched_yield
// before the sleep: with many sleepers on few cores those cost more than all the rest.
#pragma once

#include <atomic>
#include <cstdint>

namespace holdfast {

// Returns when `word` was woken or is not `expected` any more; also for no reason.
// Threads: any.
void FutexWait(std::atomic<uint32_t>& word, uint32_t expected);
// Change the word first.
void FutexWakeOne(std::atomic<uint32_t>& word);
void FutexWakeAll(std::atomic<uint32_t>& word);

}  // namespace holdfast
