"""Train the demo model on one GPU (or, to try it, on the CPU at --tiny scale).

    train.py DATA OUT [--minutes 8]

DATA is prepare.py's folder. OUT gets the best weights by held-out loss (bfloat16, in shards under 15 MB),
config.json, metrics.json and train.log. Three phases share the time:
  dense   full attention over 1024 positions at a constant rate; the indexer joins half-way
  long    full attention over 2048 positions; the rate starts to fall
  sparse  attention over the indexer's top-k alone, 2048 and 4096 positions, routed experts rounded to NVFP4
The indexer learns from the KL divergence to the attention averaged over heads; its inputs are detached, so
it never disturbs the model. The data is small (many epochs), so the first phase ends early when the
held-out loss stops falling.
"""

import argparse
import json
import math
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import save_file

from model import Model, default_config, nll_of_windows, perplexity
from muon import Muon

WINDOW = 2048  # held-out windows
SHARD_BYTES = 14_500_000


@dataclass
class Phase:
    name: str
    share: float  # of the time
    lengths: list[int]
    sparse: bool
    quantized: bool


PHASES = [
    Phase("dense", 0.62, [1024], sparse=False, quantized=False),
    Phase("long", 0.10, [2048], sparse=False, quantized=False),
    Phase("sparse", 0.28, [2048, 2048, 2048, 4096], sparse=True, quantized=True),
]
PATIENCE = 4  # evaluations without a better held-out loss that end the dense phase


class Batches:
    """Windows of one epoch in random order, from a random start; [B, S + 1]."""

    def __init__(self, tokens: torch.Tensor, generator: torch.Generator):
        self.tokens, self.generator, self.queues, self.seen = tokens, generator, {}, 0

    def next(self, length: int, count: int) -> torch.Tensor:
        queue = self.queues.get(length, torch.empty(0, dtype=torch.long))
        while len(queue) < count:
            shift = int(torch.randint(length, (1,), generator=self.generator))
            starts = torch.arange(shift, len(self.tokens) - length, length)
            queue = torch.cat([queue, starts[torch.randperm(len(starts), generator=self.generator)]])
        now, self.queues[length] = queue[:count], queue[count:]
        self.seen += count * length
        index = now[:, None] + torch.arange(length + 1)
        return self.tokens[index.to(self.tokens.device)].long()


class Trainer:
    def __init__(self, args, data: dict, out: Path):
        self.args, self.out = args, out
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        torch.manual_seed(args.seed)
        if self.device.type == "cuda":
            torch.backends.cuda.enable_cudnn_sdp(False)  # flash and memory-efficient attention take every shape here
        config = default_config(data)
        if args.tiny:
            config.update(num_hidden_layers=2, index_topk=64)
        self.config = config
        self.model = Model(config).to(self.device)
        load = lambda name: torch.from_numpy(np.load(args.data / name).astype(np.int32)).to(self.device)  # noqa: E731
        self.batches = Batches(load("train.npy"), torch.Generator().manual_seed(args.seed))
        held = load("heldout.npy").long()
        self.windows = held[: len(held) // WINDOW * WINDOW].view(-1, WINDOW)
        if args.tiny:
            self.windows = self.windows[::48, :256]
        self.rows = {}
        self.best = (math.inf, None)
        self.log_file = (out / "train.log").open("w")
        self.optimizers = self.make_optimizers()

    def log(self, text: str) -> None:
        print(text, flush=True)
        print(text, file=self.log_file, flush=True)

    def make_optimizers(self):
        matrices, decayed, plain, indexer = [], [], [], []
        for name, p in self.model.named_parameters():
            if ".indexer." in name:
                indexer.append(p)
            elif p.ndim < 2 or name.endswith("mlp.gate.weight"):
                plain.append(p)
            elif "embed_tokens" in name or "lm_head" in name:
                decayed.append(p)
            else:
                matrices.append(p)
        rate, decay = self.args.rate, self.args.weight_decay
        adam = torch.optim.AdamW(
            [
                {"params": decayed, "weight_decay": decay},
                {"params": plain, "weight_decay": 0.0},
                {"params": indexer, "weight_decay": 0.01},
            ],
            lr=rate, betas=(0.9, 0.95), eps=1e-10, fused=self.device.type == "cuda",
        )  # fmt: skip
        return [Muon(matrices, rate, decay), adam]

    def autocast(self):
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda")

    def set_phase(self, phase: Phase) -> None:
        for moe in self.model.moe_layers():
            moe.quantized = phase.quantized

    def backward(self, phase: Phase, length: int, with_indexer: bool) -> tuple[torch.Tensor, torch.Tensor]:
        count = max(1, self.args.batch_tokens // length)
        batch = self.batches.next(length, count)
        inputs, targets = batch[:, :-1], batch[:, 1:]
        if self.args.token_dropout > 0:
            noise = torch.randint_like(inputs, self.config["vocab_size"])
            inputs = torch.where(torch.rand(inputs.shape, device=self.device) < self.args.token_dropout, noise, inputs)
        rows = torch.randint(length, (64,), device=self.device) if with_indexer else None
        self.model.train()
        with self.autocast():
            logits, indexer_loss = self.model(inputs, phase.sparse, rows)
        loss = F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())
        (loss + indexer_loss).backward()
        return loss.detach(), indexer_loss.detach()

    def step(self, phase: Phase, length: int, with_indexer: bool, rate: float, balance: float):
        losses = self.backward(phase, length, with_indexer)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        for moe in self.model.moe_layers():  # balancing without a loss: raise the bias of idle experts
            bias = moe.gate.e_score_correction_bias
            bias += balance * (moe.load.mean() - moe.load).sign()
        return losses

    def probe(self) -> None:
        """One backward pass of every shape before the clock starts; halves the batch when memory is short."""
        for phase in PHASES:
            self.set_phase(phase)
            for length in sorted({self.length(n) for n in phase.lengths}):
                while True:
                    try:
                        self.backward(phase, length, True)
                        break
                    except torch.cuda.OutOfMemoryError:
                        self.args.batch_tokens //= 2
                        torch.cuda.empty_cache()
                self.model.zero_grad(set_to_none=True)
        self.batches.seen = 0
        self.log(f"{self.args.batch_tokens} tokens a step")

    def length(self, length: int) -> int:
        return length // 8 if self.args.tiny else length

    def evaluate(self, sparse: bool) -> float:
        with self.autocast():
            return nll_of_windows(self.model, self.windows, 16, sparse).mean().item()

    def remember(self, loss: float) -> bool:
        if loss >= self.best[0]:
            return False
        self.best = (loss, {k: v.detach().clone() for k, v in self.model.state_dict().items()})
        return True

    def run(self) -> dict:
        args = self.args
        self.model.dropout = args.dropout
        self.probe()
        budget, step, curve = args.minutes * 60, 0, []
        begin = time.monotonic()
        decay_begin = 0.0
        shift = 0.0  # seconds saved by ending the dense phase early
        for phase_idx, phase in enumerate(PHASES):
            self.set_phase(phase)
            phase_begin = time.monotonic() - begin
            phase_end = budget * sum(p.share for p in PHASES[: phase_idx + 1]) - shift
            decay_begin = phase_begin if phase_idx == 1 else decay_begin
            self.best = (math.inf, None)
            # A shorter run than the plan has fewer evaluations, never none.
            eval_every = min(args.eval_seconds, (phase_end - phase_begin) / 6)
            misses, next_eval, sums, num = 0, phase_begin + eval_every, torch.zeros(2, device=self.device), 0
            while (now := time.monotonic() - begin) < phase_end:
                rate = args.rate * min(1.0, (step + 1) / 200)
                if phase_idx > 0:
                    rate *= max(0.01, 1 - (now - decay_begin) / (budget - shift - decay_begin))
                with_indexer = phase_idx > 0 or now > 0.5 * phase_end
                length = self.length(phase.lengths[step % len(phase.lengths)])
                balance = 1e-3 if phase_idx == 0 else 2e-4 if phase_idx == 1 else 0.0
                sums += torch.stack(self.step(phase, length, with_indexer, rate, balance))
                step, num = step + 1, num + 1
                if now >= next_eval:
                    held = self.evaluate(phase.sparse)
                    is_best = self.remember(held)
                    misses = 0 if is_best else misses + 1
                    loss, kl = (sums / num).tolist()
                    epochs = self.batches.seen / len(self.batches.tokens)
                    worst = max((m.load.max() / m.load.mean()).item() for m in self.model.moe_layers())
                    curve.append([phase.name, step, round(now, 1), round(loss, 4), round(held, 4), round(kl, 4)])
                    self.log(
                        f"{now:6.1f} s  {phase.name:6s} step {step:5d} epoch {epochs:6.1f} rate {rate:.2e}"
                        f"  train {loss:.4f} held-out {held:.4f} (ppl {math.exp(held):.3f})"
                        f"  indexer KL {kl:.3f}  fullest expert {worst:.2f}x{'  *' if is_best else ''}"
                    )
                    sums, num = torch.zeros(2, device=self.device), 0
                    next_eval = time.monotonic() - begin + eval_every
                    if phase_idx == 0 and misses >= PATIENCE:
                        shift = phase_end - (time.monotonic() - begin)
                        self.log(f"held-out loss no longer falls: the dense phase ends {shift:.0f} s early")
                        break
            held = self.evaluate(phase.sparse)
            self.remember(held)
            self.log(f"end of {phase.name}: held-out {held:.4f}, best {self.best[0]:.4f}")
            if phase_idx == 0 or phase_idx == len(PHASES) - 1:
                self.model.load_state_dict(self.best[1])
        self.model.eval()
        seconds = time.monotonic() - begin
        nll = {}
        for name, sparse, quantized in (
            ("bf16_dense_attention", False, False), ("bf16", True, False), ("nvfp4", True, True)
        ):  # fmt: skip
            for moe in self.model.moe_layers():
                moe.quantized = quantized
            nll[name] = self.evaluate(sparse)
        return {
            "heldout_nll": nll,
            "steps": step,
            "tokens_per_step": args.batch_tokens,
            "tokens_seen": self.batches.seen,
            "epochs": self.batches.seen / len(self.batches.tokens),
            "seconds": seconds,
            "device": torch.cuda.get_device_name() if self.device.type == "cuda" else "CPU",
            "settings": {k: v for k, v in vars(args).items() if not isinstance(v, Path)},
            "curve": curve,
        }

    def save(self, metrics: dict) -> None:
        shard, size, shards = {}, 0, []
        for name, t in self.model.state_dict().items():
            t = t.float() if name.endswith("e_score_correction_bias") else t.to(torch.bfloat16)
            if size + t.nbytes > SHARD_BYTES:
                shards.append(shard)
                shard, size = {}, 0
            shard[name], size = t.contiguous().cpu(), size + t.nbytes
        for i, tensors in enumerate([*shards, shard]):
            save_file(tensors, self.out / f"trained-{i}.safetensors")
        (self.out / "config.json").write_text(json.dumps(self.config, indent=2) + "\n")
        (self.out / "metrics.json").write_text(json.dumps(metrics, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--batch-tokens", type=int, default=65536)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--weight-decay", type=float, default=0.3)
    parser.add_argument("--dropout", type=float, default=0.2)
    parser.add_argument("--token-dropout", type=float, default=0.05, help="share of input tokens replaced by random ones")
    parser.add_argument("--eval-seconds", type=float, default=15.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tiny", action="store_true", help="two layers, an eighth of the length: to try it on a CPU")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    trainer = Trainer(args, json.loads((args.data / "data.json").read_text()), args.out)
    metrics = trainer.run()
    trainer.save(metrics)
    text = ", ".join(f"{k} {math.exp(v):.3f}" for k, v in metrics["heldout_nll"].items())
    trainer.log(f"held-out perplexity: {text}; {metrics['seconds']:.0f} s, {metrics['steps']} steps")


if __name__ == "__main__":
    main()
