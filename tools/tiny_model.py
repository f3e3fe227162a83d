"""A small random GLM-5 (glm_moe_dsa) for the scripts that write reference checkpoints, and its logits.

The model is so made that its logits are a usable reference: signals keep their size through the layers, biases and norms are
not at their defaults, and no choice of experts or of indexed positions hangs on the last bits of a score.
"""
import json
import math
import pathlib

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

NUM_TOKENS = 40  # more than index_topk, so that the sparse selection is at work

CONFIG = dict(
    vocab_size=128, hidden_size=64, intermediate_size=96, moe_intermediate_size=32, num_hidden_layers=3,
    num_attention_heads=4, num_key_value_heads=4, n_shared_experts=1, n_routed_experts=8, num_experts_per_tok=2,
    n_group=1, topk_group=1, routed_scaling_factor=2.5, first_k_dense_replace=1, kv_lora_rank=32, q_lora_rank=32,
    qk_nope_head_dim=32, qk_rope_head_dim=16, v_head_dim=32, index_n_heads=16, index_head_dim=32, index_topk=8,
    max_position_embeddings=256, rms_norm_eps=1e-5, tie_word_embeddings=False, bos_token_id=None, eos_token_id=[1],
    pad_token_id=0, rope_parameters={"rope_theta": 10000.0, "rope_type": "default"})


def write_random_model(folder, seed):
    """A bfloat16 checkpoint in `folder`, as transformers saves it."""
    torch.manual_seed(seed)
    config = AutoConfig.for_model("glm_moe_dsa", **CONFIG)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name and name.endswith("weight"):
                parameter.copy_(1 + 0.1 * torch.randn_like(parameter))
            elif parameter.dim() == 1:
                parameter.normal_(0, 0.1)
            else:
                parameter.normal_(0, 1 if "embed" in name else 1 / math.sqrt(parameter.shape[-1]))
        for name, buffer in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                buffer.normal_(0, 0.1)
    model.to(torch.bfloat16).save_pretrained(folder)


def load(folder, dtype):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="eager").eval()
    for name, module in model.named_modules():
        # transformers ignores rms_norm_eps here; serving engines do not, nor do we.
        if name.endswith(("q_a_layernorm", "kv_a_layernorm")):
            module.variance_epsilon = model.config.rms_norm_eps
    return model


def random_tokens(seed):
    return torch.randint(2, CONFIG["vocab_size"], (1, NUM_TOKENS), generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def logits_of(model, tokens):
    return model(tokens, use_cache=False).logits[0].float()


@torch.no_grad()
def is_well_conditioned(folder, tokens, num_trials=8):
    """Whether weights changed in the fifth digit leave the logits as they are: no selection is near a tie."""
    reference = logits_of(load(folder, torch.float32), tokens)
    for trial in range(num_trials):
        torch.manual_seed(trial)
        model = load(folder, torch.float32)
        for parameter in model.parameters():
            parameter.mul_(1 + 2e-5 * torch.randn_like(parameter))
        changed = logits_of(model, tokens)
        if torch.linalg.norm(changed - reference) > 5e-4 * torch.linalg.norm(reference):
            return False
    return True


def write_dequantized_twin(exported, folder, source, dequantize):
    """The exported checkpoint with plain float32 weights. dequantize(tensors, prefix) gives the weight of the module
    `prefix`, or None if it is not quantised."""
    tensors = load_file(pathlib.Path(exported) / "model.safetensors")
    plain = {}
    for name in load_file(pathlib.Path(source) / "model.safetensors"):
        prefix, _, leaf = name.rpartition(".")
        weight = dequantize(tensors, prefix) if leaf == "weight" else None
        plain[name] = (tensors[name] if weight is None else weight).float().contiguous()
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(plain, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((pathlib.Path(source) / "config.json").read_text())
    config["dtype"] = "float32"
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


# Of these modules the dequantised weights are kept too.
SHOWN = ["model.layers.0.mlp.down_proj", "model.layers.1.self_attn.q_b_proj"] + [
    f"model.layers.1.mlp.experts.0.{part}_proj" for part in ("gate", "up", "down")]


def write_reference(folder, twin, tokens):
    """tokens.json for `sinter score --tokens`, reference/logits.safetensors and reference/weights.safetensors to compare
    with. They are in a folder of their own because every *.safetensors beside config.json would belong to the model."""
    folder = pathlib.Path(folder)
    (folder / "tokens.json").write_text(json.dumps(tokens[0].tolist()) + "\n")
    (folder / "reference").mkdir(exist_ok=True)
    save_file({"logits": logits_of(load(twin, torch.float32), tokens).contiguous()}, folder / "reference/logits.safetensors")
    weights = load_file(pathlib.Path(twin) / "model.safetensors")
    save_file({name: weights[f"{name}.weight"] for name in SHOWN}, folder / "reference/weights.safetensors")
    for file in folder.rglob("*"):
        if file.is_file():
            file.chmod(0o644)
