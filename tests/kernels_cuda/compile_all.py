"""Compiles every device file for every architecture of src/device/arch.cc with nvcc, where one is installed.

Usage: compile_all.py NVCC ROOT [--arch NAME ...] [--file STEM ...] [--jobs N] [--table]

Fails on errors, warnings, register spills, and shared memory beyond what a block may have. A stack frame is
allowed where listed: sine and cosine of large angles need one.
"""
import argparse
import collections
import concurrent.futures
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile


def combinations(**choices):
    return [dict(zip(choices, values)) for values in itertools.product(*choices.values())]


FLOATS = ["Bf16", "float"]
FORMATS = ["Bf16Format", "Fp8TensorFormat", "Fp8BlockFormat", "Nvfp4Format", "Mxfp4Format"]
VARIANTS = {
    "embedding": combinations(WEIGHT=["F16", *FLOATS], Y=["float"]),
    "rms_norm": combinations(X=FLOATS, Y=FLOATS),
    "layer_norm": combinations(X=FLOATS, Y=["Bf16"]),
    "rope": combinations(X=FLOATS),
    "silu_mul": combinations(X=FLOATS, Y=["Bf16"]),
    "cache_write": combinations(X=FLOATS, CACHE=["Bf16"]),
    "router": [{}],
    "sample": [{}],
    "linear_decode": combinations(FORMAT=[*FORMATS, "F16Format", "F32Format"], X=["Bf16"], Y=["Bf16"], TILES=["1", "2"])
    + combinations(FORMAT=["Nvfp4Format", "F32Format"], X=["float"], Y=["float"], TILES=["1"]),
    "linear_prefill": combinations(FORMAT=FORMATS, Y=["Bf16"], COLUMNS=["64", "128"]),
    "head_linear_decode": combinations(FORMAT=["Bf16Format", "F32Format"], X=["Bf16"], Y=["Bf16"], TILES=["1", "2"]),
    "head_linear_prefill": combinations(Y=["Bf16"], COLUMNS=["64", "128"]),
    "moe_ffn_slots": combinations(Y=FLOATS),
    "moe_ffn_decode": [
        {"FORMAT": form, "FORMAT_DOWN": form, "X": "Bf16", "TILES": tiles}
        for form in ["Bf16Format", "Fp8BlockFormat", "Nvfp4Format", "MixedFormat"] for tiles in ["1", "2"]
    ],
    "moe_ffn_prefill": [
        {"FORMAT": form, "FORMAT_DOWN": form, "COLUMNS": columns}
        for form in ["Bf16Format", "Fp8BlockFormat", "Nvfp4Format"] for columns in ["64", "128"]
    ],
    "gqa_attention": combinations(D=["64"], DV=["64"], Q=FLOATS, CACHE=FLOATS)
    + combinations(D=["128"], DV=["128"], Q=["Bf16"], CACHE=["Bf16"])
    + combinations(D=["256"], DV=["256"], Q=["Bf16"], CACHE=["Bf16"]),
    "mla_attention": combinations(C=["512"], R=["64"], Q=["Bf16"], CACHE=["Bf16"], GROUPS=["1", "2"])
    + combinations(C=["512"], R=["64"], Q=["float"], CACHE=FLOATS, GROUPS=["1"]),
    "attention_merge": combinations(Q=FLOATS),
    "indexer": combinations(D=["128"], Q=FLOATS, CACHE=["Bf16"]),
}
# Payne-Hanek reduction keeps its digits in local memory.
MAY_HAVE_STACK = {"rope"}


def read_architectures(root):
    """[(name, shared bytes of a block, {feature: 0 or 1})]"""
    text = (root / "src/device/arch.cc").read_text()
    features = re.findall(r'\{"(\w+)", &Arch::has_', text)
    rows = re.findall(r'\{"(sm_\w+)", \d+, \d+, (\d+), \d+, \d+, \d+,([ 01,]+)\}', text)
    architectures = [(name, int(shared), dict(zip(features, flags.replace(",", " ").split()))) for name, shared, flags in rows]
    assert len(architectures) == 10 and all(len(flags) == len(features) for _, _, flags in architectures), architectures
    return architectures


Kernel = collections.namedtuple("Kernel", "name registers shared stack spills")


def compile_one(nvcc, root, folder, file, variant, architecture):
    name, shared_limit, features = architecture
    macros = {f"SINTER_{key}": value for key, value in variant.items()}
    macros |= {f"SINTER_HAS_{key}": value for key, value in features.items()}
    command = [nvcc, "-cubin", f"-arch={name}", "--std=c++17", "-I", str(root / "src/kernels"), "-Xptxas", "-v",
               *(f"-D{key}={value}" for key, value in macros.items()), "-o",
               str(pathlib.Path(folder) / f"{file}.{abs(hash((name, str(variant))))}.cubin"),
               str(root / f"src/kernels/cuda/{file}.cu")]
    result = subprocess.run(command, capture_output=True, text=True)
    where = f"{file} {variant} {name}"
    if result.returncode != 0 or "warning" in result.stderr:
        return [], [f"{where}: {result.stderr.strip()}"]
    kernels, problems = [], []
    reports = re.findall(r"properties for (\w+)\n\s*(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads\n"
                         r".*Used (\d+) registers(?:.*?(\d+) bytes smem)?", result.stderr)
    for kernel, stack, stores, loads, registers, shared in reports:
        report = Kernel(kernel, int(registers), int(shared or 0), int(stack), int(stores) + int(loads))
        kernels.append(report)
        if report.spills or (report.stack and file not in MAY_HAVE_STACK):
            problems.append(f"{where}: {report}")
        if report.shared > min(shared_limit, 48 << 10):
            problems.append(f"{where}: {report.shared} bytes of static shared memory")
    if not kernels:
        problems.append(f"{where}: no kernel in ptxas' report")
    return kernels, problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("nvcc")
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("--arch", action="append")
    parser.add_argument("--file", action="append")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--table", action="store_true", help="registers of every kernel and architecture")
    options = parser.parse_args()
    files = {path.stem for path in (options.root / "src/kernels/cuda").glob("*.cu")}
    assert files == set(VARIANTS), f"files without variants, or the reverse: {files ^ set(VARIANTS)}"
    architectures = [a for a in read_architectures(options.root) if options.arch is None or a[0] in options.arch]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = [(file, variant, architecture, pool.submit(compile_one, options.nvcc, options.root, folder, file, variant, architecture))
                for architecture in architectures for file, variants in VARIANTS.items()
                if options.file is None or file in options.file for variant in variants]
        problems = []
        table = collections.defaultdict(dict)
        for file, variant, architecture, run in runs:
            kernels, found = run.result()
            problems += found
            for kernel in kernels:
                table[kernel.name, " ".join(variant.values()), kernel.shared][architecture[0]] = kernel.registers
    if options.table:
        print("kernel | instance | static shared bytes |", " | ".join(name for name, _, _ in architectures))
        for (kernel, variant, shared), registers in table.items():
            print(f"{kernel} | {variant} | {shared} |", " | ".join(str(registers.get(name, "-")) for name, _, _ in architectures))
    print(f"{len(runs)} compilations, {len(problems)} problems")
    print("\n".join(problems))
    sys.exit(1 if problems or not runs else 0)


if __name__ == "__main__":
    main()
