// Runs device code on the host, one block after the other: a thread is a fiber that runs until it needs
// others (a barrier, a shuffle, a matrix product), so a kernel's logic can be tested without a GPU. Shared
// memory holds NaN when a block starts, asynchronous copies land only when they are waited for, and threads
// run forwards or backwards, so that a missing barrier or wait shows. It says nothing about speed.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace sinter::simt {

struct Grid {
  int x = 1, y = 1, z = 1;
};

constexpr int kLanes = 32;
constexpr size_t kStackBytes = 128 << 10;

class Machine {
 public:
  static Machine& get() {
    static Machine machine;
    return machine;
  }

  // `kernel` is called once by every thread. `backwards`: the last thread of a block runs first.
  void run(Grid grid, int num_threads, size_t shared_bytes, bool backwards, std::function<void()> kernel) {
    kernel_ = std::move(kernel);
    grid_ = grid;
    backwards_ = backwards;
    threads_.resize(static_cast<size_t>(num_threads));
    warps_.resize(static_cast<size_t>(num_threads / kLanes));
    for (block_.z = 0; block_.z < grid.z; ++block_.z)
      for (block_.y = 0; block_.y < grid.y; ++block_.y)
        for (block_.x = 0; block_.x < grid.x; ++block_.x) run_block(shared_bytes);
  }

  int thread_idx() const { return current_; }
  int num_threads() const { return static_cast<int>(threads_.size()); }
  Grid block() const { return block_; }
  Grid grid() const { return grid_; }
  unsigned char* dynamic_shared() { return reinterpret_cast<unsigned char*>(dynamic_.data()); }

  void* shared(const char* file, int line, size_t size_bytes) {
    std::vector<std::max_align_t>& memory = arrays_[{file, line}];
    if (memory.empty()) poison(memory, size_bytes);
    return memory.data();
  }

  void sync_block() {
    if (++num_at_barrier_ == num_alive_) return release_block();
    wait(Waiting::kBlock);
  }

  // What all lanes of the warp gave, by lane.
  const std::byte* gather(const void* value, size_t size_bytes) {
    Warp& warp = warps_[static_cast<size_t>(current_ / kLanes)];
    const int turn = warp.turn;
    std::memcpy(warp.values[turn] + static_cast<size_t>(current_ % kLanes) * size_bytes, value, size_bytes);
    if (++warp.num_given == kLanes) {
      warp.num_given = 0;
      warp.turn = 1 - turn;
      for (int i = 0; i < kLanes; ++i) thread(current_ / kLanes * kLanes + i).waiting = Waiting::kNothing;
    } else {
      wait(Waiting::kWarp);
    }
    return warp.values[turn];
  }

  void copy_async(void* target, const void* source, int valid_bytes) {
    thread(current_).groups.back().push_back({target, source, valid_bytes});
  }
  void commit_copies() { thread(current_).groups.emplace_back(); }
  void wait_copies(int num_pending) {
    auto& groups = thread(current_).groups;
    while (static_cast<int>(groups.size()) - 1 > num_pending) {
      for (const Copy& copy : groups.front()) {
        std::memset(copy.target, 0, 16);
        std::memcpy(copy.target, copy.source, static_cast<size_t>(copy.valid_bytes));
      }
      groups.erase(groups.begin());
    }
  }

 private:
  enum class Waiting { kNothing, kWarp, kBlock };
  struct Copy {
    void* target;
    const void* source;
    int valid_bytes;
  };
  struct Thread {
    ucontext_t context;  // of its start
    jmp_buf place;       // where it waits: a jump costs no system call, a change of context two
    bool started = false;
    std::unique_ptr<std::byte[]> stack;
    Waiting waiting = Waiting::kNothing;
    bool done = false;
    std::vector<std::vector<Copy>> groups;  // of copies; the last is still open
  };
  struct Warp {
    int num_given = 0, turn = 0;
    alignas(64) std::byte values[2][kLanes * 64];
  };

  static void poison(std::vector<std::max_align_t>& memory, size_t size_bytes) {
    memory.resize((size_bytes + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t));
    if (!memory.empty()) std::memset(memory.data(), 0xff, memory.size() * sizeof(std::max_align_t));
  }

  Thread& thread(int i) { return threads_[static_cast<size_t>(i)]; }

  void wait(Waiting what) {
    Thread& self = thread(current_);
    self.waiting = what;
    if (_setjmp(self.place) == 0) _longjmp(scheduler_, 1);
  }

  void resume(Thread& one) {
    if (_setjmp(scheduler_) != 0) return;
    if (one.started) _longjmp(one.place, 1);
    one.started = true;
    setcontext(&one.context);
  }

  void release_block() {
    num_at_barrier_ = 0;
    for (Thread& one : threads_)
      if (one.waiting == Waiting::kBlock) one.waiting = Waiting::kNothing;
  }

  static void enter() {
    Machine& machine = get();
    machine.kernel_();
    Thread& self = machine.thread(machine.current_);
    self.done = true;
    --machine.num_alive_;
    if (machine.num_alive_ > 0 && machine.num_at_barrier_ == machine.num_alive_) machine.release_block();
    _longjmp(machine.scheduler_, 1);
  }

  void run_block(size_t shared_bytes) {
    arrays_.clear();
    poison(dynamic_, shared_bytes);
    num_alive_ = num_threads();
    num_at_barrier_ = 0;
    for (Warp& warp : warps_) warp.num_given = warp.turn = 0;
    for (Thread& one : threads_) {
      if (one.stack == nullptr) one.stack = std::make_unique<std::byte[]>(kStackBytes);
      one.waiting = Waiting::kNothing;
      one.done = one.started = false;
      one.groups.assign(1, {});
      getcontext(&one.context);
      one.context.uc_stack.ss_sp = one.stack.get();
      one.context.uc_stack.ss_size = kStackBytes;
      one.context.uc_link = nullptr;
      makecontext(&one.context, enter, 0);
    }
    while (num_alive_ > 0) {
      bool progress = false;
      for (int i = 0; i < num_threads(); ++i) {
        current_ = backwards_ ? num_threads() - 1 - i : i;
        Thread& one = thread(current_);
        if (one.done || one.waiting != Waiting::kNothing) continue;
        progress = true;
        resume(one);
      }
      if (!progress) {
        std::fprintf(stderr, "deadlock in block (%d, %d, %d)\n", block_.x, block_.y, block_.z);
        std::abort();
      }
    }
  }

  std::function<void()> kernel_;
  Grid grid_, block_;
  bool backwards_ = false;
  int current_ = 0, num_alive_ = 0, num_at_barrier_ = 0;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::map<std::pair<const char*, int>, std::vector<std::max_align_t>> arrays_;
  std::vector<std::max_align_t> dynamic_;
  jmp_buf scheduler_;
};

inline int thread_idx() { return Machine::get().thread_idx(); }
inline int num_threads() { return Machine::get().num_threads(); }
inline int block_x() { return Machine::get().block().x; }
inline int block_y() { return Machine::get().block().y; }
inline int block_z() { return Machine::get().block().z; }
inline int num_blocks_x() { return Machine::get().grid().x; }
inline void sync_block() { Machine::get().sync_block(); }
inline unsigned char* dynamic_shared() { return Machine::get().dynamic_shared(); }
inline void copy_async(void* target, const void* source, int valid_bytes) {
  Machine::get().copy_async(target, source, valid_bytes);
}
inline void commit_copies() { Machine::get().commit_copies(); }
inline void wait_copies(int num_pending) { Machine::get().wait_copies(num_pending); }

template <typename T>
const T* gather(const T& value) {
  static_assert(sizeof(T) <= 64);
  return reinterpret_cast<const T*>(Machine::get().gather(&value, sizeof(T)));
}

template <typename T, size_t kCount>
T (&shared_array(const char* file, int line))
[kCount] {
  return *static_cast<T(*)[kCount]>(Machine::get().shared(file, line, sizeof(T) * kCount));
}

}  // namespace sinter::simt
