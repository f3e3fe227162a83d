"""Run train.py once per visible GPU, each with other regularisation, and keep the best result by held-out loss.

    sweep.py DATA OUT [--minutes 8]

With one GPU this is train.py with its defaults. OUT/runs.log holds every run's log.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import torch

SETTINGS = [
    ["--dropout", "0.2", "--weight-decay", "0.3"],
    ["--dropout", "0.1", "--weight-decay", "0.3"],
    ["--dropout", "0.3", "--weight-decay", "0.3"],
    ["--dropout", "0.2", "--weight-decay", "1.0"],
    ["--dropout", "0.2", "--weight-decay", "0.3", "--rate", "6e-3"],
    ["--dropout", "0.1", "--weight-decay", "1.0"],
    ["--dropout", "0.2", "--weight-decay", "0.3", "--batch-tokens", "32768"],
    ["--dropout", "0.3", "--weight-decay", "1.0"],
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    args, rest = parser.parse_known_args()
    num_gpus = max(1, torch.cuda.device_count())
    runs = []
    for i, settings in enumerate(SETTINGS[:num_gpus]):
        folder = Path(f"build/train-{i}")
        shutil.rmtree(folder, ignore_errors=True)
        command = [sys.executable, Path(__file__).with_name("train.py"), args.data, folder, *settings, *rest]
        stdout = None if num_gpus == 1 else subprocess.DEVNULL
        environment = os.environ if num_gpus == 1 else os.environ | {"CUDA_VISIBLE_DEVICES": str(i)}
        runs.append((folder, subprocess.Popen(command, stdout=stdout, env=environment)))
    args.out.mkdir(parents=True, exist_ok=True)
    losses = {}
    log = ""
    for i, (folder, process) in enumerate(runs):
        process.wait()
        if process.returncode == 0:
            losses[folder] = json.loads((folder / "metrics.json").read_text())["heldout_nll"]["nvfp4"]
        summary = f"run {i}: exit {process.returncode}, held-out nll {losses.get(folder)}, {SETTINGS[i]}"
        print(summary, flush=True)
        if (folder / "train.log").exists():
            log += f"{summary}\n{(folder / 'train.log').read_text()}\n"
    (args.out / "runs.log").write_text(log)
    if not losses:
        sys.exit("no run succeeded")
    for path in min(losses, key=losses.get).iterdir():
        shutil.copy(path, args.out / path.name)


if __name__ == "__main__":
    main()
