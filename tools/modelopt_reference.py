#!/usr/bin/env python3
"""Writes tests/golden/modelopt/nvfp4.safetensors: small weights and what NVIDIA's ModelOpt makes of them.

For each case NAME: NAME.weight (BF16 or F32), NAME.codes, NAME.scales and NAME.scale_tensor as ModelOpt quantises it, and
NAME.given_scale where the tensor scale was given (gate and up that share one). Needs nvidia-modelopt and torch; the
tests read the result only.
"""
import argparse
import math
import pathlib

import torch
from modelopt.torch.quantization.qtensor import NVFP4QTensor
from safetensors.torch import save_file


def on_ties(shape, generator):
    """Tensor and block scales that are powers of two, elements on the points halfway between two codes."""
    halfway = torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 6.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0])
    weight = halfway[torch.randint(len(halfway), shape, generator=generator)]
    weight *= torch.randint(0, 2, shape, generator=generator) * 2 - 1
    blocks = weight.view(shape[0], -1, 16)
    blocks[:, :, 0] = 6.0
    blocks *= 2.0 ** torch.randint(-8, 8, (shape[0], blocks.shape[1], 1), generator=generator)
    weight[0, 0] = 6.0 * 448.0  # the tensor scale is then 1
    return weight


def beside_ties(shape, generator):
    """The same a float32 step to either side."""
    weight = on_ties(shape, generator)
    toward = torch.where(torch.rand(shape, generator=generator) < 0.5, -math.inf, math.inf)
    return torch.nextafter(weight, toward).clamp(-6.0 * 448.0, 6.0 * 448.0)


def cases():
    generator = torch.Generator().manual_seed(20250601)
    shape = (32, 128)

    def normal(std=0.02):
        return torch.randn(shape, generator=generator) * std

    yield "normal_bf16", normal().bfloat16(), None
    yield "normal_f32", normal(), None
    heavy = normal() * torch.exp(4.0 * torch.randn(shape, generator=generator))
    yield "heavy_tails", heavy.bfloat16(), None
    spread = normal() * 10.0 ** torch.linspace(-6, 0, shape[0])[:, None]
    yield "scales_at_both_ends", spread, None
    zeros = normal()
    zeros.view(shape[0], -1, 16)[::2, ::3] = 0.0
    zeros.view(shape[0], -1, 16)[1::4, 1::2] = -0.0
    yield "zero_blocks", zeros.bfloat16(), None
    yield "tiny", normal(1e-30), None
    yield "subnormal", normal(1e-39), None
    yield "huge", normal(1e37), None
    yield "on_ties", on_ties(shape, generator), None
    yield "beside_ties", beside_ties(shape, generator), None
    yield "shared_scale", normal().bfloat16(), torch.tensor(0.31 / 2688.0)
    yield "shared_scale_too_small", normal().bfloat16(), torch.tensor(0.01 / 2688.0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--out", type=pathlib.Path, default=root / "tests/golden/modelopt/nvfp4.safetensors")
    out = parser.parse_args().out
    tensors = {}
    for name, weight, given_scale in cases():
        quantised, scales, scale_tensor = NVFP4QTensor.quantize(
            weight.clone(), 16, weights_scaling_factor_2=given_scale)
        tensors[f"{name}.weight"] = weight
        tensors[f"{name}.codes"] = quantised._quantized_data
        tensors[f"{name}.scales"] = scales.view(weight.shape[0], -1)
        tensors[f"{name}.scale_tensor"] = scale_tensor.float().reshape(()).clone()
        if given_scale is not None:
            tensors[f"{name}.given_scale"] = given_scale
    out.parent.mkdir(parents=True, exist_ok=True)
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, out)
    print(f"{out}: {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
