#!/usr/bin/env python3
"""Writes tests/golden/exports/compressed_tensors_*: small checkpoints by the compressed-tensors package, with reference logits.

Calibration is what llm-compressor does with the same package: minimum and maximum of weights and activations, every expert
seeing every token. The logits are those of transformers in float32 with the weights that the package's own functions decompress.
Needs compressed-tensors, torch and transformers; the tests read the results only.
"""
import argparse
import pathlib
import shutil
import tempfile

import tiny_model
import torch
from compressed_tensors.compressors import ModelCompressor
from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
from compressed_tensors.quantization import QuantizationConfig, apply_quantization_config
from compressed_tensors.quantization.lifecycle.forward import dequantize as dequantize_values
from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam
from safetensors.torch import load_file, save_file

IGNORE = ["lm_head", "re:.*mlp\\.gate$"]
EVERYTHING = {"NVFP4": ["Linear"]}
# As the GLM-5 recipes have it: attention in FP8 blocks, the rest in NVFP4 without activation scales.
MIXED = {"FP8_BLOCK": ["re:.*self_attn.*"], "NVFP4A16": ["re:.*mlp.*(gate|up|down)_proj$"]}


class Tree(torch.nn.Module):
    """The modules of a checkpoint by name, each expert's matrices as Linear of their own: what the package compresses."""

    def __init__(self, tensors):
        super().__init__()
        for name, tensor in tensors.items():
            *path, leaf = name.split(".")
            is_linear = leaf == "weight" and tensor.dim() == 2 and path[-1] not in ("embed_tokens", "gate")
            if is_linear:
                linear = torch.nn.Linear(tensor.shape[1], tensor.shape[0], bias=False, dtype=tensor.dtype)
                linear.weight = torch.nn.Parameter(tensor, requires_grad=False)
                self.parent(path[:-1]).add_module(path[-1], linear)
            else:
                self.parent(path).register_parameter(leaf, torch.nn.Parameter(tensor, requires_grad=False))

    def parent(self, path):
        module = self
        for name in path:
            if name not in module._modules:
                module.add_module(name, torch.nn.Module())
            module = module._modules[name]
        return module


@torch.no_grad()
def activation_ranges(source, tree):
    """Smallest and largest input of each Linear: {name: (min, max)}."""
    model = tiny_model.load(source, torch.bfloat16)
    modules = dict(tree.named_modules())
    ranges = {}

    def see(name, inputs):
        low, high = ranges.get(name, (torch.tensor(0.0), torch.tensor(0.0)))
        ranges[name] = torch.minimum(low, inputs.min().float()), torch.maximum(high, inputs.max().float())

    def see_experts(name, inputs):
        expert_idx = 0
        while f"{name}.{expert_idx}.gate_proj" in modules:
            gate, up = (modules[f"{name}.{expert_idx}.{part}_proj"] for part in ("gate", "up"))
            see(f"{name}.{expert_idx}.gate_proj", inputs)
            see(f"{name}.{expert_idx}.up_proj", inputs)
            hidden = torch.nn.functional.silu(inputs @ gate.weight.T) * (inputs @ up.weight.T)
            see(f"{name}.{expert_idx}.down_proj", hidden)
            expert_idx += 1

    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear):
            module.register_forward_pre_hook(lambda _, args, name=name: see(name, args[0]))
        elif name.endswith("mlp.experts"):
            module.register_forward_pre_hook(lambda _, args, name=name: see_experts(name, args[0]))
    generator = torch.Generator().manual_seed(1)
    for _ in range(8):
        model(torch.randint(2, tiny_model.CONFIG["vocab_size"], (4, 64), generator=generator))
    return ranges


@torch.no_grad()
def calibrate(tree, ranges):
    for name, module in tree.named_modules():
        scheme = getattr(module, "quantization_scheme", None)
        if scheme is None:
            continue
        weight, arguments = module.weight.float(), scheme.weights
        if arguments.block_structure is not None:
            rows, columns = arguments.block_structure
            tiles = [[tile for tile in band.split(columns, 1)] for band in weight.split(rows, 0)]
            low = torch.tensor([[tile.min() for tile in band] for band in tiles])
            high = torch.tensor([[tile.max() for tile in band] for band in tiles])
        else:
            groups = weight.view(weight.shape[0], -1, arguments.group_size)
            low, high = groups.amin(-1), groups.amax(-1)
        global_scale = None
        if hasattr(module, "weight_global_scale"):
            global_scale = generate_gparam(weight.min(), weight.max())
            module.weight_global_scale.copy_(global_scale)
        scale, _ = calculate_qparams(low, high, arguments, global_scale)
        module.weight_scale.copy_(scale)
        if hasattr(module, "input_global_scale"):
            module.input_global_scale.copy_(generate_gparam(*ranges[name]))


def dequantize(tensors, prefix, schemes):
    """With the package's functions, but in float32: its decompress_model rounds to bfloat16."""
    if prefix not in schemes:
        return None
    scale = tensors[f"{prefix}.weight_scale"].float()
    packed = tensors.get(f"{prefix}.weight_packed")
    if packed is None:
        values = tensors[f"{prefix}.weight"].float()
    else:
        values = unpack_fp4_from_uint8(packed, packed.shape[0], packed.shape[1] * 2, dtype=torch.float32)
    return dequantize_values(values, scale, args=schemes[prefix].weights, dtype=torch.float32,
                             global_scale=tensors.get(f"{prefix}.weight_global_scale"))


def export(source, folder, groups):
    config = QuantizationConfig(config_groups=groups, ignore=IGNORE)
    tree = Tree(load_file(source / "model.safetensors"))
    apply_quantization_config(tree, config)
    calibrate(tree, activation_ranges(source, tree))
    compressor = ModelCompressor(quantization_config=config)
    compressor.compress_model(tree)
    folder.mkdir(parents=True)
    save_file({name: tensor.contiguous() for name, tensor in tree.state_dict().items()}, folder / "model.safetensors",
              metadata={"format": "pt"})
    for file in ("config.json", "generation_config.json"):
        shutil.copy(source / file, folder / file)
    compressor.update_config(str(folder))
    modules = tree.named_modules()
    return {name: module.quantization_scheme for name, module in modules if hasattr(module, "quantization_scheme")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--out", type=pathlib.Path, default=root / "tests/golden/exports")
    out = parser.parse_args().out
    for name, groups in {"compressed_tensors_nvfp4": EVERYTHING, "compressed_tensors_mixed": MIXED}.items():
        for seed in range(1, 200):
            with tempfile.TemporaryDirectory() as scratch:
                scratch = pathlib.Path(scratch)
                tiny_model.write_random_model(scratch / "source", seed)
                schemes = export(scratch / "source", scratch / name, groups)
                tiny_model.write_dequantized_twin(scratch / name, scratch / "twin", scratch / "source",
                                                  lambda *which: dequantize(*which, schemes))
                tokens = tiny_model.random_tokens(seed)
                if not tiny_model.is_well_conditioned(scratch / "twin", tokens):
                    continue
                tiny_model.write_reference(scratch / name, scratch / "twin", tokens)
                shutil.rmtree(out / name, ignore_errors=True)
                shutil.copytree(scratch / name, out / name)
                print(f"{out / name}: seed {seed}")
                break
        else:
            raise SystemExit(f"{name}: no seed gives a well-conditioned model")


if __name__ == "__main__":
    main()
