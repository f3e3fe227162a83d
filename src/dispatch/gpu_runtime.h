// What a context needs to compute on a GPU.
#pragma once

#include "device/gpu_device.h"
#include "device/gpu_stream.h"
#include "device/gpu_uploader.h"
#include "jit/compiler.h"
#include "kernels/gpu_launch.h"

namespace sinter::dispatch {

struct GpuRuntime {
  // `pool` outlives it.
  GpuRuntime(const GpuDevice& device_of, ThreadPool& pool,
             jit::Settings settings = jit::settings_from_environment())
      : device(device_of),
        compiler(std::move(settings)),
        stream(device),
        programs(device, compiler),
        uploader(device, pool) {}

  GpuDevice device;
  jit::Compiler compiler;
  GpuStream stream;  // of all kernels, in the order of run()
  kernels::GpuPrograms programs;
  GpuUploader uploader;
};

}  // namespace sinter::dispatch
