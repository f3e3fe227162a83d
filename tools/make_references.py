"""Make tests/golden/reference: logits of transformers in float32 on small random checkpoints of every model type.

    make_references.py [--search]      needs torch, transformers 5.17, safetensors, numpy

Per case of tests/golden/reference/make_checkpoint.py, CASE.safetensors holds, for bfloat16 experts and (suffix
_nvfp4) for NVFP4 experts, dequantised:
  logits    [T, V] float32
  selected  [L, T, T] uint8, 1 where the sparse attention of a layer may look (models with an indexer)
  experts   [L, T, A] int32, the chosen experts in ascending order; -1 in dense layers
and summary.json: the seed, how far every selection is from a tie, and what bfloat16 arithmetic costs.
--search tries seeds until every selection of both forms is at least MIN_GAP away from a tie.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

ROOT = Path(__file__).resolve().parent.parent / "tests/golden/reference"
sys.path.insert(0, str(ROOT))
import make_checkpoint as mc  # noqa: E402

MIN_GAP = 1e-4  # between the last chosen and the first refused, relative to the row's largest magnitude
E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


class TopkRecorder:
    """Sees every topk of the model: the choices, and how close each was."""

    def __init__(self, c: dict):
        self.c, self.experts, self.positions, self.gap = c, [], [], {}

    def __enter__(self):
        self.function, self.method = torch.topk, torch.Tensor.topk
        torch.topk = lambda *a, **k: self.record(self.function, *a, **k)
        torch.Tensor.topk = lambda *a, **k: self.record(self.method, *a, **k)
        return self

    def __exit__(self, *_):
        torch.topk, torch.Tensor.topk = self.function, self.method

    def record(self, topk, x, *args, **kwargs):
        out = topk(x, *args, **kwargs)
        k, n = out[1].shape[-1], x.shape[-1]
        rows = x.detach().reshape(-1, n).float()
        if k >= n:
            return out
        if n == mc.NUM_TOKENS:
            self.positions.append(out[1].reshape(-1, k))
            self.note("positions", rows, k)
        elif n == mc.num_experts(self.c) and k == self.c["num_experts_per_tok"]:
            self.experts.append(out[1].reshape(-1, k).sort(-1)[0].int())
            is_softmax = "scoring_func" not in self.c
            self.note("experts", rows.log() if is_softmax else rows, k)  # up to a constant, the router's own output
        elif x.dim() == 2 and n == self.c.get("n_group") and k == self.c["topk_group"]:
            self.note("groups", rows, k)
        return out

    def note(self, what: str, rows: torch.Tensor, k: int) -> None:
        ordered = rows.sort(-1, descending=True)[0]
        usable = ordered[:, k] > -1e30  # masked entries are -inf or the lowest finite number
        if usable.any():
            largest = rows.abs().masked_fill(rows < -1e30, 0).amax(-1)
            gap = ((ordered[:, k - 1] - ordered[:, k]) / largest)[usable].min().item()
            self.gap[what] = min(gap, self.gap.get(what, float("inf")))


def dequantized(path: Path) -> dict[str, torch.Tensor]:
    raw, out = load_file(path), {}
    for name, t in raw.items():
        if name + "_scale_2" in raw:
            codes = torch.stack([t & 15, t >> 4], -1).flatten(-2).int()
            step = raw[name + "_scale"].float() * raw[name + "_scale_2"]
            out[name] = (E2M1[codes].unflatten(-1, (-1, 16)) * step.unsqueeze(-1)).flatten(-2)
        elif not name.endswith(("_scale", "_scale_2")):
            out[name] = t.float()
    return out


def transformers_config(c: dict) -> dict:
    """The same model in the keys of transformers 5."""
    c = {k: v for k, v in c.items() if k != "quantization_config"} | {"dtype": "float32"}
    if c["model_type"] == "kimi_k2":
        c["model_type"] = "deepseek_v3"
    if "rope_theta" in c:
        rope = dict(c.pop("rope_scaling") or {"rope_type": "default"}) | {"rope_theta": c.pop("rope_theta")}
        rope["rope_type"] = rope.pop("type", rope.get("rope_type"))
        if "partial_rotary_factor" in c:
            rope["partial_rotary_factor"] = c["partial_rotary_factor"]
        c["rope_parameters"] = rope
    return c


def load_model(folder: Path, dtype: torch.dtype):
    """transformers' model of the folder's weights, dequantised."""
    c = transformers_config(json.loads((folder / "config.json").read_text()))
    with tempfile.TemporaryDirectory() as plain:
        (Path(plain) / "config.json").write_text(json.dumps(c))
        save_file(dequantized(folder / "model.safetensors"), Path(plain) / "model.safetensors", {"format": "pt"})
        model, info = AutoModelForCausalLM.from_pretrained(
            plain, dtype=dtype, attn_implementation="eager", experts_implementation="eager", output_loading_info=True
        )
    assert not (info["missing_keys"] or info["unexpected_keys"] or info["mismatched_keys"]), info
    for module in model.modules():  # transformers keeps its default of 1e-6 in the two latent norms
        for name in ("q_a_layernorm", "kv_a_layernorm"):
            if hasattr(module, name):
                getattr(module, name).variance_epsilon = c["rms_norm_eps"]
    return model.eval()


@torch.no_grad()
def run(case: str, is_nvfp4: bool, seed: int) -> tuple[dict[str, torch.Tensor], dict] | float:
    """Results and facts for the summary; only the smallest gap when that is too small."""
    c = mc.config_of(case)
    ids = torch.tensor(mc.tokens(c["vocab_size"]))[None]
    with tempfile.TemporaryDirectory() as folder:
        mc.write_checkpoint(case, Path(folder), is_nvfp4, seed)
        with TopkRecorder(c) as seen:
            logits = load_model(Path(folder), torch.float32)(ids).logits[0]
        if (gap := min(seen.gap.values())) < MIN_GAP:
            return gap
        with TopkRecorder(c) as seen_bf16:
            rounded = load_model(Path(folder), torch.bfloat16)(ids).logits[0].float()
    layers, num_dense = c["num_hidden_layers"], c.get("first_k_dense_replace", 0)
    assert len(seen.experts) == layers - num_dense
    dense = torch.full_like(seen.experts[0], -1)
    out = {"logits": logits.contiguous(), "experts": torch.stack([dense] * num_dense + seen.experts)}
    if "index_topk" in c:
        kinds = c.get("indexer_types", ["full"] * layers)
        assert len(seen.positions) == kinds.count("full")
        masks, chosen = [], iter(seen.positions)
        for kind in kinds:
            if kind == "full":
                mask = torch.zeros(mc.NUM_TOKENS, mc.NUM_TOKENS, dtype=torch.uint8).scatter_(1, next(chosen).long(), 1)
            masks.append(mask.tril())
        out["selected"] = torch.stack(masks)
    # For information: bfloat16 arithmetic throughout, and how many rows of all layers chose otherwise because of it.
    flips = {
        what: sum(int((a.sort(-1)[0] != b.sort(-1)[0]).any(-1).sum()) for a, b in zip(*pair))
        for what, pair in {
            "experts": (seen.experts, seen_bf16.experts), "positions": (seen.positions, seen_bf16.positions)
        }.items()
    }  # fmt: skip
    by_token = (rounded - logits).norm(dim=1) / logits.norm(dim=1)
    error = {
        "all": ((rounded - logits).norm() / logits.norm()).item(),
        "best_token": by_token.min().item(),
        "median_token": by_token.median().item(),
        "flips": flips,
    }
    return out, {"gap": seen.gap, "bf16_arithmetic": error}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--search", action="store_true")
    parser.add_argument("--max-seeds", type=int, default=60)
    args = parser.parse_args()
    torch.set_num_threads(1)
    summary = {}
    for case, (seed, config) in mc.CASES.items():
        for candidate in range(args.max_seeds) if args.search else [seed]:
            results = {}
            for suffix in ("", "_nvfp4"):
                result = run(case, bool(suffix), candidate)
                if isinstance(result, float):
                    print(f"{case}: seed {candidate} refused, smallest gap {result:.1e}", flush=True)
                    break
                results[suffix] = result
            else:
                break
        else:
            sys.exit(f"{case}: no seed keeps every selection {MIN_GAP} away from a tie; use --search")
        if candidate != seed:
            print(f"{case}: write seed {candidate} into make_checkpoint.py")
        tensors = {name + suffix: t for suffix, (out, _) in results.items() for name, t in out.items()}
        save_file(tensors, ROOT / f"{case}.safetensors")
        summary[case] = {"seed": candidate} | {(s or "_bf16")[1:] + "_experts": i for s, (_, i) in results.items()}
        print(case, json.dumps(summary[case]), flush=True)
    import transformers

    ids = mc.tokens(mc.BASE["vocab_size"])
    (ROOT / "tokens.json").write_text(json.dumps(ids) + "\n")
    versions = {"transformers": transformers.__version__, "torch": torch.__version__, "numpy": np.__version__}
    (ROOT / "summary.json").write_text(json.dumps({"made_with": versions} | summary, indent=2) + "\n")


if __name__ == "__main__":
    main()
