// A fixed set of threads, one per core, pinned. Work is split by position alone, so that results do not
// depend on timing; kernels split output rows, so that they do not depend on the number of threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace sinter {

// Cores that this process may use; hardware threads of one core count once. At least 1.
int num_allowed_cores();

class ThreadPool {
 public:
  // The caller is worker 0. `num_threads` 0: one per core that this process may use (hardware threads of
  // one core count once). Pinning is skipped when `num_threads` exceeds the allowed CPUs, which is said once;
  // Error(kUsage) for more than four per CPU and more than 16.
  explicit ThreadPool(int num_threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return num_threads_; }

  // Calls task(worker_idx) on every worker and returns when all are done. An exception of a worker is
  // rethrown here. Not reentrant, one caller at a time.
  template <typename Task>
  void run(const Task& task) {
    run_erased([](const void* context, int worker_idx) { (*static_cast<const Task*>(context))(worker_idx); },
               &task);
  }

  // Inside run(): returns when all workers have called it. Every worker must call it equally often.
  void barrier();

  // Inside run(): the part [begin, end) of `count` items in groups of `grain` that a worker takes.
  struct Range {
    int64_t begin, end;
  };
  Range part(int worker_idx, int64_t count, int64_t grain = 1) const;

 private:
  using ErasedTask = void (*)(const void* context, int worker_idx);
  void run_erased(ErasedTask task, const void* context);
  void work(int worker_idx);
  void call(int worker_idx);

  int num_threads_;
  std::vector<int> cpus_;  // empty: not pinned
  std::vector<std::thread> threads_;
  ErasedTask task_ = nullptr;
  const void* context_ = nullptr;
  bool stop_ = false;
  std::unique_ptr<std::exception_ptr[]> exceptions_;
  alignas(64) std::atomic<uint32_t> generation_{0};
  alignas(64) std::atomic<int> num_done_{0};
  alignas(64) std::atomic<uint32_t> barrier_arrivals_{0};
};

}  // namespace sinter
