// ops::SiluMulProblem. SINTER_X, SINTER_Y: float or Bf16.
#include "gpu/numerics.h"
#include "gpu/silu_mul_params.h"

namespace sinter::gpu {

// gate, up, y [T, I]; y may be gate or up.
SINTER_KERNEL(256)
silu_mul(const SINTER_X* gate, const SINTER_X* up, SINTER_Y* y, SiluMulParams p) {
  begin_kernel();
  const int num_parts = ceil_div(p.I, kSiluMulColumns);
  const I64 t = block_x() / num_parts;
  const int begin = block_x() % num_parts * kSiluMulColumns;
  const int end = min_of(begin + kSiluMulColumns, p.I);
  for (int i = begin + thread_idx(); i < end; i += num_threads()) {
    const float value = load(gate + t * p.gate_stride, i);
    store(y + t * p.y_stride, i, value / (1 + expf(-value)) * load(up + t * p.up_stride, i));
  }
}

}  // namespace sinter::gpu
