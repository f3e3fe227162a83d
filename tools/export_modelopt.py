#!/usr/bin/env python3
"""Writes tests/golden/exports/modelopt_*: small checkpoints by NVIDIA's ModelOpt exporter, with reference logits.

The logits are those of transformers in float32 with the weights that ModelOpt itself dequantises. Needs nvidia-modelopt, torch and
transformers; the tests read the results only.
"""
import argparse
import pathlib
import shutil
import tempfile

import modelopt.torch.quantization as mtq
import tiny_model
import torch
from modelopt.torch.export import export_hf_checkpoint
from modelopt.torch.quantization.qtensor import NVFP4QTensor
from safetensors.torch import load_file

# Each quantises all but embedding, router and head, as some exports of GLM-5 are.
FORMATS = {
    "modelopt_nvfp4": mtq.NVFP4_DEFAULT_CFG,
    "modelopt_nvfp4_w4a16": mtq.W4A16_NVFP4_CFG,
    "modelopt_fp8": mtq.FP8_DEFAULT_CFG,
}


def dequantize(tensors, prefix):
    scale = tensors.get(f"{prefix}.weight_scale")
    if scale is None:
        return None
    weight = tensors[f"{prefix}.weight"]
    if weight.dtype == torch.float8_e4m3fn:
        return weight.float() * scale.float()
    shape = torch.Size((weight.shape[0], weight.shape[1] * 2))
    return NVFP4QTensor(shape, torch.float32, weight).dequantize(
        scale=scale, double_scale=tensors[f"{prefix}.weight_scale_2"], block_sizes={-1: 16})


def export(source, folder, config):
    model = tiny_model.load(source, torch.bfloat16)

    def calibrate(module):
        generator = torch.Generator().manual_seed(1)
        for _ in range(8):
            module(torch.randint(2, tiny_model.CONFIG["vocab_size"], (4, 64), generator=generator))

    mtq.quantize(model, config, calibrate)
    export_hf_checkpoint(model, export_dir=folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--out", type=pathlib.Path, default=root / "tests/golden/exports")
    parser.add_argument("--formats", nargs="*", choices=FORMATS, default=list(FORMATS))
    arguments = parser.parse_args()
    for name in arguments.formats:
        for seed in range(1, 200):
            with tempfile.TemporaryDirectory() as scratch:
                scratch = pathlib.Path(scratch)
                tiny_model.write_random_model(scratch / "source", seed)
                export(scratch / "source", scratch / name, FORMATS[name])
                tiny_model.write_dequantized_twin(scratch / name, scratch / "twin", scratch / "source", dequantize)
                tokens = tiny_model.random_tokens(seed)
                if not tiny_model.is_well_conditioned(scratch / "twin", tokens):
                    continue
                tiny_model.write_reference(scratch / name, scratch / "twin", tokens)
                shutil.rmtree(arguments.out / name, ignore_errors=True)
                shutil.copytree(scratch / name, arguments.out / name)
                num_tensors = len(load_file(arguments.out / name / "model.safetensors"))
                print(f"{arguments.out / name}: seed {seed}, {num_tensors} tensors")
                break
        else:
            raise SystemExit(f"{name}: no seed gives a well-conditioned model")


if __name__ == "__main__":
    main()
