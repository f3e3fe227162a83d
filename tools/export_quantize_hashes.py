#!/usr/bin/env python3
"""Writes tests/cli/modelopt_hashes.json: what NVIDIA's ModelOpt makes of a checkpoint that the tests can write again.

The source is the glm_moe_dsa case of tests/golden/reference/make_checkpoint.py. Of every module that ModelOpt quantises
the file has one SHA-256 over its weight and weight scales, so that `sinter quantize` can be held to the same bytes.
Needs nvidia-modelopt, torch and transformers; the test needs NumPy.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import modelopt.torch.quantization as mtq
import torch
from modelopt.torch.export import export_hf_checkpoint
from transformers import AutoModelForCausalLM

ROOT = pathlib.Path(__file__).resolve().parent.parent

sys.path.insert(0, str(ROOT / "tests/cli"))
from safetensors_bytes import module_hashes  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "tests/cli/modelopt_hashes.json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        make = ROOT / "tests/golden/reference/make_checkpoint.py"
        subprocess.run([sys.executable, str(make), "glm_moe_dsa", str(scratch / "source")], check=True)
        model = AutoModelForCausalLM.from_pretrained(
            scratch / "source", dtype=torch.bfloat16, attn_implementation="eager").eval()
        generator = torch.Generator().manual_seed(1)
        tokens = [torch.randint(2, 512, (4, 64), generator=generator) for _ in range(4)]
        mtq.quantize(model, mtq.W4A16_NVFP4_CFG, lambda module: [module(each) for each in tokens])
        export_hf_checkpoint(model, export_dir=scratch / "exported")
        hashes = module_hashes(scratch / "exported")
    print(f"{len(hashes)} modules")
    arguments.out.write_text(json.dumps(hashes, indent=0) + "\n")


if __name__ == "__main__":
    main()
