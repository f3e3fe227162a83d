"""Usage: check_additions.py ROOT

A kernel is one stem and one row; a model is one file. Adds both to a copy of the tree exactly so, builds the
program, and sees that the kernel is listed and the model is read.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

KERNEL = '''#include "kernels/kernel.h"

namespace sinter::kernels::cpu {

extern const KernelInfo silu_mul_dummy{
    .name = "cpu.silu_mul_dummy",
    .op = ops::Op::kSiluMul,
    .supports = [](const ops::Problem&, const DeviceInfo&) { return Support::no("is only an example"); },
    .launch = [](LaunchContext&, const ops::Problem&, const ops::Args&, const Config&) {},
};

}  // namespace sinter::kernels::cpu
'''


def main():
    root = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "sinter"
        shutil.copytree(root, copy, ignore=shutil.ignore_patterns("build", ".git", ".cache"))

        (copy / "src/kernels/cpu/silu_mul_dummy.cc").write_text(KERNEL)
        registry = copy / "src/kernels/registry.cc"
        text, count = re.subn(r"(\n\s*)X\(cpu, silu_mul_plain\)", r"\1X(cpu, silu_mul_dummy)\g<0>", registry.read_text())
        assert count == 1, "the row of silu_mul_plain is not where it is expected"
        # The X-macro needs its continuation.
        text = text.replace("X(cpu, silu_mul_dummy)\n", "X(cpu, silu_mul_dummy) \\\n")
        registry.write_text(text)

        model = (copy / "src/models/qwen3_moe.cc").read_text().replace("qwen3_moe", "dummy_moe")
        (copy / "src/models/dummy_moe.cc").write_text(model)

        subprocess.run(["cmake", "--preset", "release", "-DSINTER_TESTS=OFF"], cwd=copy, check=True,
                       stdout=subprocess.DEVNULL)
        subprocess.run(["cmake", "--build", "build/release", "--target", "sinter"], cwd=copy, check=True,
                       stdout=subprocess.DEVNULL)
        program = copy / "build/release/bin/sinter"
        listing = subprocess.run([program, "kernels"], check=True, capture_output=True, text=True).stdout
        assert "cpu.silu_mul_dummy" in listing and "is only an example" in listing, listing

        checkpoint = pathlib.Path(folder) / "dummy"
        checkpoint.mkdir()
        (checkpoint / "config.json").write_text(json.dumps({
            "model_type": "dummy_moe", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
            "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 128, "moe_intermediate_size": 64,
            "num_experts": 8, "num_experts_per_tok": 2, "norm_topk_prob": True, "vocab_size": 256,
            "rms_norm_eps": 1e-6, "max_position_embeddings": 512, "rope_theta": 10000.0, "hidden_act": "silu"}))
        seen = subprocess.run([program, "inspect", checkpoint], check=True, capture_output=True, text=True).stdout
        assert "dummy_moe" in seen, seen
        print("one stem and one row added a kernel; one file added a model")


if __name__ == "__main__":
    main()
