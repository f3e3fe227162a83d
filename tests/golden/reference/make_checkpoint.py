"""Write one of the small random checkpoints whose logits are kept beside this file. Needs NumPy alone.

    make_checkpoint.py CASE OUT [--nvfp4]     CASE: see `--list`

The folder is a Hugging Face checkpoint: config.json and model.safetensors (bfloat16; with --nvfp4 the routed
experts in ModelOpt's layout, plus hf_quant_config.json). Weights come from a counter-based generator keyed by
the tensor's name, so they are the same bit for bit on every machine. tools/make_references.py ran transformers on
exactly these folders and wrote CASE.safetensors: float32 logits, and which positions and experts were chosen.
"""

import argparse
import json
import struct
from pathlib import Path

import numpy as np

NUM_TOKENS = 48
INDEX_TOPK = 8

BASE = {
    "vocab_size": 512, "hidden_size": 256, "num_hidden_layers": 4, "hidden_act": "silu", "tie_word_embeddings": False,
    "max_position_embeddings": 512, "initializer_range": 0.02, "eos_token_id": 1, "dtype": "bfloat16",
    "num_experts_per_tok": 4, "moe_intermediate_size": 128, "norm_topk_prob": True,
}  # fmt: skip
SIGMOID = {
    "n_routed_experts": 16, "n_shared_experts": 1, "n_group": 1, "topk_group": 1, "intermediate_size": 512,
    "first_k_dense_replace": 1, "scoring_func": "sigmoid", "topk_method": "noaux_tc", "num_nextn_predict_layers": 0,
}  # fmt: skip
MLA = {
    "num_attention_heads": 4, "num_key_value_heads": 4, "attention_bias": False, "q_lora_rank": 128, "kv_lora_rank": 64,
    "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 32,
}  # fmt: skip
INDEXER = {"index_n_heads": 32, "index_head_dim": 32, "index_topk": INDEX_TOPK}
GROUPS = {"n_group": 4, "topk_group": 2}
GLM = BASE | SIGMOID | MLA | INDEXER | {
    "model_type": "glm_moe_dsa", "architectures": ["GlmMoeDsaForCausalLM"], "qk_head_dim": 48, "head_dim": 16,
    "rms_norm_eps": 1e-5, "routed_scaling_factor": 2.5, "rope_interleave": True, "indexer_rope_interleave": True,
    "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
}  # fmt: skip
YARN = {
    "rope_type": "yarn", "rope_theta": 10000.0, "factor": 40.0, "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0,
    "mscale_all_dim": 1.0, "original_max_position_embeddings": 64,
}  # fmt: skip

# The seed of each case keeps every selection (positions, experts, groups) away from a tie: make_references.py.
CASES = {
    "glm_moe_dsa": (4, GLM),
    "glm_moe_dsa_shared": (
        0, GLM | {"num_hidden_layers": 5, "indexer_types": ["full", "full", "shared", "shared", "full"]}
    ),
    "deepseek_v3": (
        0, BASE | SIGMOID | MLA | GROUPS | {
            "model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"], "rms_norm_eps": 1e-6,
            "routed_scaling_factor": 2.5, "rope_parameters": YARN,
        }
    ),
    "kimi_k2": (  # keys as published: rope_theta and rope_scaling at the top
        1, BASE | SIGMOID | MLA | {
            "model_type": "kimi_k2", "architectures": ["DeepseekV3ForCausalLM"], "rms_norm_eps": 1e-5,
            "routed_scaling_factor": 2.827, "rope_theta": 50000.0,
            "rope_scaling": {
                "type": "yarn", "factor": 32.0, "beta_fast": 1.0, "beta_slow": 1.0, "mscale": 1.0,
                "mscale_all_dim": 1.0, "original_max_position_embeddings": 64,
            },
        }
    ),
    "deepseek_v32": (
        4, BASE | SIGMOID | MLA | INDEXER | GROUPS | {
            "model_type": "deepseek_v32", "architectures": ["DeepseekV32ForCausalLM"], "rms_norm_eps": 1e-6,
            "routed_scaling_factor": 2.5, "rope_parameters": YARN,
        }
    ),
    "glm4_moe": (
        1, BASE | SIGMOID | {
            "model_type": "glm4_moe", "architectures": ["Glm4MoeForCausalLM"], "rms_norm_eps": 1e-5,
            "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 32, "attention_bias": True,
            "use_qk_norm": True, "partial_rotary_factor": 0.5, "rope_theta": 1000000.0, "rope_scaling": None,
            "routed_scaling_factor": 2.5,
        }
    ),
    "qwen3_moe": (
        1, BASE | {
            "model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "rms_norm_eps": 1e-6,
            "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 32, "attention_bias": False,
            "num_experts": 16, "decoder_sparse_step": 1, "mlp_only_layers": [], "intermediate_size": 512,
            "rope_theta": 1000000.0, "rope_scaling": None,
        }
    ),
}  # fmt: skip


def config_of(case: str) -> dict:
    return CASES[case][1]


def num_experts(c: dict) -> int:
    return c.get("n_routed_experts", c.get("num_experts"))


# --- names and shapes ------------------------------------------------------------------------------------------------


def attention_shapes(c: dict, layer: int) -> dict[str, tuple[int, ...]]:
    H, Q = c["hidden_size"], c["num_attention_heads"]
    if "kv_lora_rank" not in c:
        D, G = c["head_dim"], c["num_key_value_heads"]
        shapes = {"q_proj.weight": (Q * D, H), "k_proj.weight": (G * D, H), "v_proj.weight": (G * D, H)}
        if c["attention_bias"]:
            shapes |= {"q_proj.bias": (Q * D,), "k_proj.bias": (G * D,), "v_proj.bias": (G * D,)}
        if c["model_type"] == "qwen3_moe" or c.get("use_qk_norm"):
            shapes |= {"q_norm.weight": (D,), "k_norm.weight": (D,)}
        return shapes | {"o_proj.weight": (H, Q * D)}
    nope, rotary, v, q_rank, kv_rank = (
        c[k] for k in ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "q_lora_rank", "kv_lora_rank")
    )
    shapes = {
        "q_a_proj.weight": (q_rank, H), "q_a_layernorm.weight": (q_rank,),
        "q_b_proj.weight": (Q * (nope + rotary), q_rank),
        "kv_a_proj_with_mqa.weight": (kv_rank + rotary, H), "kv_a_layernorm.weight": (kv_rank,),
        "kv_b_proj.weight": (Q * (nope + v), kv_rank), "o_proj.weight": (H, Q * v),
    }  # fmt: skip
    if "index_topk" in c and c.get("indexer_types", ["full"] * (layer + 1))[layer] == "full":
        heads, D = c["index_n_heads"], c["index_head_dim"]
        shapes |= {
            "indexer.wq_b.weight": (heads * D, q_rank), "indexer.wk.weight": (D, H), "indexer.k_norm.weight": (D,),
            "indexer.k_norm.bias": (D,), "indexer.weights_proj.weight": (heads, H),
        }  # fmt: skip
    return shapes


def mlp_shapes(prefix: str, H: int, I: int) -> dict[str, tuple[int, ...]]:
    return {
        f"{prefix}.gate_proj.weight": (I, H), f"{prefix}.up_proj.weight": (I, H), f"{prefix}.down_proj.weight": (H, I)
    }  # fmt: skip


def shapes_of(c: dict) -> dict[str, tuple[int, ...]]:
    H, I, E = c["hidden_size"], c["moe_intermediate_size"], num_experts(c)
    shapes = {"model.embed_tokens.weight": (c["vocab_size"], H)}
    for layer in range(c["num_hidden_layers"]):
        p = f"model.layers.{layer}"
        shapes[f"{p}.input_layernorm.weight"] = (H,)
        shapes |= {f"{p}.self_attn.{k}": v for k, v in attention_shapes(c, layer).items()}
        shapes[f"{p}.post_attention_layernorm.weight"] = (H,)
        if layer < c.get("first_k_dense_replace", 0):
            shapes |= mlp_shapes(f"{p}.mlp", H, c["intermediate_size"])
            continue
        shapes[f"{p}.mlp.gate.weight"] = (E, H)
        if "n_shared_experts" in c:
            shapes[f"{p}.mlp.gate.e_score_correction_bias"] = (E,)
            shapes |= mlp_shapes(f"{p}.mlp.shared_experts", H, I * c["n_shared_experts"])
        for e in range(E):
            shapes |= mlp_shapes(f"{p}.mlp.experts.{e}", H, I)
    return shapes | {"model.norm.weight": (H,), "lm_head.weight": (c["vocab_size"], H)}


# --- numbers ---------------------------------------------------------------------------------------------------------


def uniform(key: str, seed: int, n: int) -> np.ndarray:
    """n float64 in [-1, 1): splitmix64 of a counter that starts at the FNV-1a hash of `key`."""
    state = 0xCBF29CE484222325
    for byte in f"{seed}:{key}".encode():
        state = (state ^ byte) * 0x100000001B3 % 2**64
    z = np.uint64(state) + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return (z >> np.uint64(40)).astype(np.float64) * 2.0**-23 - 1.0


def bf16(x: np.ndarray) -> np.ndarray:
    """Bits of the nearest bfloat16, ties to even."""
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)


def widen(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def values(name: str, shape: tuple[int, ...], c: dict, seed: int) -> np.ndarray:
    """float64, uniform; large enough that no part of the model fades into the residual."""
    u = uniform(name, seed, int(np.prod(shape))).reshape(shape) * 3.0**0.5
    if name.endswith("e_score_correction_bias"):
        bias = 0.1 * u
        # Strongly negative biases tell -inf masking of groups from masking with zero.
        return np.where(np.arange(shape[0]) % 5 == 3, bias - 2.0, bias) if c["n_group"] > 1 else bias
    if len(shape) == 1:
        return 0.1 * u if name.endswith("bias") else 1.0 + 0.1 * u
    # Gains a little above one, and router logits of about one: neither scores nor softmax saturate.
    std = 0.1 / (shape[-1] / 256) ** 0.5
    for suffix, special in (("embed_tokens.weight", 0.5), ("mlp.gate.weight", 0.05)):
        std = special if name.endswith(suffix) else std
    return u * std


def tokens(vocab_size: int) -> list[int]:
    return [int(t) for t in (uniform("tokens", 0, NUM_TOKENS) + 1.0) / 2.0 * vocab_size]


E2M1_BOUNDS = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0], np.float32)  # a tie goes to the even code
E4M3 = np.array([(m * 2.0**-9 if e == 0 else (1 + m / 8) * 2.0 ** (e - 7)) for e in range(16) for m in range(8)][:127])


def e4m3(x: np.ndarray) -> np.ndarray:
    """Codes of positive float32 values up to 448, round to nearest, ties to even."""
    above = np.clip(np.searchsorted(E4M3, x), 1, 126)
    middle = (E4M3[above - 1] + E4M3[above]) / 2
    is_up = (x > middle) | ((x == middle) & (above % 2 == 0))
    return np.where(is_up, above, above - 1).astype(np.uint8)


def nvfp4(w: np.ndarray, scale_2: np.float32) -> tuple[np.ndarray, np.ndarray]:
    """w [N, K] float32 -> packed codes [N, K/2], e4m3 block scales [N, K/16]; ModelOpt's rounding."""
    blocks = w.reshape(len(w), -1, 16)
    s = np.abs(blocks).max(-1) / (np.float32(6.0) * scale_2)
    s = np.clip(np.where(s == 0, np.float32(1.0), s), np.float32(2.0**-9), np.float32(448.0))
    s_codes = e4m3(s)
    x = blocks / (E4M3[s_codes].astype(np.float32) * scale_2)[..., None]
    a = np.abs(x)[..., None]
    passed = np.where(np.arange(7) % 2 == 1, a >= E2M1_BOUNDS, a > E2M1_BOUNDS).sum(-1)
    codes = (passed | np.where(x < 0, 8, 0)).astype(np.uint8).reshape(w.shape)
    return codes[:, 0::2] | (codes[:, 1::2] << 4), s_codes


# --- the folder ------------------------------------------------------------------------------------------------------


def tensors_of(case: str, is_nvfp4: bool, seed: int | None = None) -> dict[str, tuple[str, np.ndarray]]:
    """Name -> (safetensors dtype, array of its raw bits)."""
    default_seed, c = CASES[case]
    seed = default_seed if seed is None else seed
    weights = {}
    for name, shape in shapes_of(c).items():
        x = values(name, shape, c, seed)
        is_f32 = name.endswith("e_score_correction_bias")
        weights[name] = ("F32", x.astype(np.float32)) if is_f32 else ("BF16", bf16(x))
    if not is_nvfp4:
        return weights
    out = {}
    for name, (dtype, bits) in weights.items():
        if ".experts." not in name:
            out[name] = (dtype, bits)
            continue
        # gate and up of one expert share their weight_scale_2.
        gate = name.replace("up_proj", "gate_proj")
        sharing = [name] if "down_proj" in name else [gate, gate.replace("gate_proj", "up_proj")]
        amax = max(np.abs(widen(weights[n][1])).max() for n in sharing)
        scale_2 = np.float32(amax) / np.float32(2688.0)
        packed, scale = nvfp4(widen(bits), scale_2)
        out[name] = ("U8", packed)
        out[name + "_scale"] = ("F8_E4M3", scale)
        out[name + "_scale_2"] = ("F32", np.array(scale_2, np.float32))
        # Not calibrated: covers inputs up to 16, for readers that insist on one.
        out[name.removesuffix("weight") + "input_scale"] = ("F32", np.array(np.float32(16.0) / np.float32(2688.0)))
    return out


def write_safetensors(path: Path, tensors: dict[str, tuple[str, np.ndarray]]) -> None:
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, (dtype, a) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(a.shape), "data_offsets": [offset, offset + a.nbytes]}
        offset += a.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _, a in tensors.values():
            f.write(np.ascontiguousarray(a).tobytes())


def write_checkpoint(case: str, folder: Path, is_nvfp4: bool, seed: int | None = None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    c = dict(config_of(case))
    if is_nvfp4:
        ignore = ["lm_head", "model.embed_tokens", "*self_attn*", "*mlp.gate", "*shared_experts*"]
        ignore += [f"model.layers.{i}.mlp*" for i in range(c.get("first_k_dense_replace", 0))]
        producer = {"name": "modelopt", "version": "0.47.0"}
        c["quantization_config"] = {
            "quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16, "ignore": ignore, "producer": producer
        }  # fmt: skip
        quantization = {"quant_algo": "NVFP4", "kv_cache_quant_algo": None, "group_size": 16, "exclude_modules": ignore}
        text = json.dumps({"producer": producer, "quantization": quantization}, indent=2)
        (folder / "hf_quant_config.json").write_text(text + "\n")
    (folder / "config.json").write_text(json.dumps(c, indent=2) + "\n")
    write_safetensors(folder / "model.safetensors", tensors_of(case, is_nvfp4, seed))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="?", choices=CASES)
    parser.add_argument("out", nargs="?", type=Path)
    parser.add_argument("--nvfp4", action="store_true", help="routed experts as NVFP4")
    parser.add_argument("--list", action="store_true", help="print the cases")
    args = parser.parse_args()
    if args.list:
        print("\n".join(CASES))
    elif args.out is None:
        parser.error("CASE and OUT are needed")
    else:
        write_checkpoint(args.case, args.out, args.nvfp4)


if __name__ == "__main__":
    main()
