#include "base/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <xmmintrin.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace sinter {
namespace {

// Allowed CPUs, the first hardware thread of every core before the second ones.
std::vector<int> allowed_cpus(size_t* num_cores) {
  cpu_set_t set;
  std::vector<int> first, rest;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return {};
  std::set<std::string> seen_cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                       "/topology/thread_siblings_list");
    std::string siblings;
    const bool known = static_cast<bool>(std::getline(file, siblings));
    (!known || seen_cores.insert(siblings).second ? first : rest).push_back(cpu);
  }
  *num_cores = first.size();
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

void pin_this_thread(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  // A failure costs speed only.
  (void)::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
}

// Subnormal e4m3 scales are computed through subnormal floats: flush-to-zero modes set by other libraries
// would lose them.
void keep_subnormals() { _mm_setcsr(_mm_getcsr() & ~0x8040u); }

// Spin for about 50 us, then sleep: a decode step has many short phases, but an idle pool must not burn.
constexpr int kSpins = 2000;

}  // namespace

int num_allowed_cores() {
  size_t num_cores = 1;
  allowed_cpus(&num_cores);
  return static_cast<int>(std::max<size_t>(num_cores, 1));
}

ThreadPool::ThreadPool(int num_threads) {
  size_t num_cores = 1;
  cpus_ = allowed_cpus(&num_cores);
  num_threads_ = num_threads > 0 ? num_threads : static_cast<int>(std::max<size_t>(num_cores, 1));
  // Waiting threads spin: hundreds on a few CPUs would not come to an end.
  const size_t most = std::max<size_t>(16, 4 * cpus_.size());
  if (static_cast<size_t>(num_threads_) > most)
    throw Error(ErrorKind::kUsage, {.where = "threads",
                                    .expected = fmt::format("at most {} on {} CPUs", most, cpus_.size()),
                                    .found = fmt::format("{}", num_threads_),
                                    .mend = {}});
  if (!cpus_.empty() && static_cast<size_t>(num_threads_) > cpus_.size()) {
    log_once(LogLevel::kWarning,
             fmt::format("{} threads share {} CPUs and wait for each other: much slower than one a CPU",
                         num_threads_, cpus_.size()));
    cpus_.clear();
  }
  exceptions_ = std::make_unique<std::exception_ptr[]>(static_cast<size_t>(num_threads_));
  keep_subnormals();
  if (!cpus_.empty() && num_threads_ > 1) pin_this_thread(cpus_[0]);
  try {
    for (int i = 1; i < num_threads_; ++i) threads_.emplace_back([this, i] { work(i); });
  } catch (const std::system_error& error) {
    const size_t num_started = threads_.size();
    // A thread that is not joined would end the program.
    stop_ = true;
    generation_.fetch_add(1, std::memory_order_release);
    generation_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    throw Error(ErrorKind::kMemory,
                {.where = "threads",
                 .expected = fmt::format("to start {}", num_threads_),
                 .found = fmt::format("{} after {}", error.code().message(), num_started + 1),
                 .mend = "take fewer with --threads"});
  }
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::call(int worker_idx) {
  try {
    task_(context_, worker_idx);
  } catch (...) {
    exceptions_[static_cast<size_t>(worker_idx)] = std::current_exception();
  }
}

void ThreadPool::work(int worker_idx) {
  keep_subnormals();
  if (!cpus_.empty()) pin_this_thread(cpus_[static_cast<size_t>(worker_idx)]);
  uint32_t seen = 0;
  while (true) {
    for (int spins = 0; generation_.load(std::memory_order_acquire) == seen;) {
      if (++spins < kSpins)
        _mm_pause();
      else
        generation_.wait(seen, std::memory_order_acquire);
    }
    ++seen;
    if (stop_) return;
    call(worker_idx);
    num_done_.fetch_add(1, std::memory_order_release);
  }
}

void ThreadPool::run_erased(ErasedTask task, const void* context) {
  SINTER_CHECK(task_ == nullptr, "ThreadPool::run called from within run");
  task_ = task;
  context_ = context;
  num_done_.store(0, std::memory_order_relaxed);
  // Nobody waits here now; a fresh count never wraps within one run.
  barrier_arrivals_.store(0, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  if (num_threads_ > 1) generation_.notify_all();
  call(0);
  for (int spins = 0; num_done_.load(std::memory_order_acquire) != num_threads_ - 1;) {
    if (++spins < kSpins)
      _mm_pause();
    else
      std::this_thread::yield();
  }
  task_ = nullptr;
  std::exception_ptr first;
  for (int i = 0; i < num_threads_; ++i) {
    // All are taken: one left behind would be thrown by the next run.
    std::exception_ptr exception = std::exchange(exceptions_[static_cast<size_t>(i)], nullptr);
    if (first == nullptr) first = std::move(exception);
  }
  if (first != nullptr) std::rethrow_exception(first);
}

void ThreadPool::barrier() {
  if (num_threads_ == 1) return;
  const auto count = static_cast<uint32_t>(num_threads_);
  const uint32_t round = barrier_arrivals_.fetch_add(1, std::memory_order_acq_rel) / count;
  for (int spins = 0; barrier_arrivals_.load(std::memory_order_acquire) / count == round;) {
    if (++spins < kSpins)
      _mm_pause();
    else
      std::this_thread::yield();
  }
}

ThreadPool::Range ThreadPool::part(int worker_idx, int64_t count, int64_t grain) const {
  const int64_t num_groups = (count + grain - 1) / grain;
  const int64_t begin = num_groups * worker_idx / num_threads_ * grain;
  const int64_t end = num_groups * (worker_idx + 1) / num_threads_ * grain;
  return {std::min(begin, count), std::min(end, count)};
}

}  // namespace sinter
