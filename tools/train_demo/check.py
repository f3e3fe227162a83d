"""Compare the demo checkpoint with transformers in float32 and with ModelOpt's quantiser.

    check.py FOLDER [--bf16 FOLDER]     needs torch, transformers 5.17; with --bf16 also nvidia-modelopt

Loads FOLDER twice, dequantised: into our training model and into GlmMoeDsaForCausalLM, over more tokens than
index_topk. With --bf16 (the same weights before quantisation) requantises every expert with NVFP4QTensor.
"""

import argparse
import json
import re
from pathlib import Path

import torch
from safetensors.torch import load_file

import nvfp4
from model import Model


def dequantized(folder: Path) -> dict[str, torch.Tensor]:
    raw, out = load_file(folder / "model.safetensors"), {}
    for name, t in raw.items():
        if name.endswith(("weight_scale", "weight_scale_2", "input_scale")):
            continue
        if name + "_scale_2" in raw:
            t = nvfp4.dequantize(t, raw[name + "_scale"], raw[name + "_scale_2"])
        out[name] = t.float()
    return out


def ours(config: dict, tensors: dict[str, torch.Tensor]) -> Model:
    model, state = Model(config), {}
    for name, t in tensors.items():
        expert = re.match(r"(.*\.mlp)\.experts\.(\d+)\.(\w+)\.weight", name)
        if expert:
            state.setdefault(f"{expert[1]}.{expert[3]}", {})[int(expert[2])] = t
        else:
            state[name] = t
    stacked = {k: torch.stack([v[i] for i in range(len(v))]) if isinstance(v, dict) else v for k, v in state.items()}
    model.load_state_dict(stacked)
    return model.eval()


def transformers_model(config: dict, tensors: dict[str, torch.Tensor]):
    import tempfile

    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM

    plain = {k: v for k, v in config.items() if k != "quantization_config"} | {"dtype": "float32"}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(plain))
        save_file(tensors, Path(folder) / "model.safetensors", {"format": "pt"})
        model, info = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
        )
    assert not info["missing_keys"] and not info["unexpected_keys"], info
    for layer in model.model.layers:  # transformers keeps its default of 1e-6 here
        for norm in (layer.self_attn.q_a_layernorm, layer.self_attn.kv_a_layernorm):
            norm.variance_epsilon = config["rms_norm_eps"]
    return model.eval()


def check_quantizer(quantized: Path, bf16: Path) -> None:
    from modelopt.torch.quantization.qtensor import NVFP4QTensor

    packed, weights = load_file(quantized / "model.safetensors"), load_file(bf16 / "model.safetensors")
    num_differing = num_tensors = 0
    for name in [n for n in packed if n.endswith(".weight_scale_2")]:
        stem = name[: -len("_scale_2")]
        q, s, g = NVFP4QTensor.quantize(weights[stem].float().clone(), 16, None, packed[name])
        same = torch.equal(q._quantized_data, packed[stem]) and torch.equal(
            s.view(torch.uint8), packed[stem + "_scale"].view(torch.uint8)
        )
        num_differing, num_tensors = num_differing + (not same), num_tensors + 1
    print(f"ModelOpt's quantiser: {num_tensors - num_differing} of {num_tensors} expert matrices equal byte for byte")


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--bf16", type=Path)
    parser.add_argument("--tokens", type=int, default=600)
    args = parser.parse_args()
    config = json.loads((args.folder / "config.json").read_text())
    tensors = dequantized(args.folder)
    tokens = torch.tensor(json.loads((args.folder / "heldout_tokens.json").read_text())[: args.tokens])[None]
    assert tokens.shape[1] > config["index_topk"]
    reference = transformers_model(config, tensors)(tokens).logits
    logits, _ = ours(config, tensors)(tokens)
    error = ((logits - reference).norm() / reference.norm()).item()
    nll = torch.nn.functional.cross_entropy(reference[0, :-1], tokens[0, 1:]).item()
    print(f"transformers float32, {tokens.shape[1]} tokens: relative error of the logits {error:.2e}, nll {nll:.4f}")
    if args.bf16:
        check_quantizer(args.folder, args.bf16)
    assert error < 1e-4, "the two implementations differ"


if __name__ == "__main__":
    main()
