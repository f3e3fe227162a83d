"""A small glm_moe_dsa model in plain PyTorch, for training: all experts run as one masked dense MLP.

The parameters carry the names of the checkpoint; only the routed experts are stacked ([E, I, H], [E, H, I]).
Shapes in comments: B sequences, S positions, H hidden, E experts, I expert width, Q heads, D index head width.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

import nvfp4


def default_config(data: dict) -> dict:
    return {
        "architectures": ["GlmMoeDsaForCausalLM"],
        "model_type": "glm_moe_dsa",
        "vocab_size": data["vocab_size"],
        "hidden_size": 256,
        "num_hidden_layers": 7,
        "first_k_dense_replace": 1,
        "num_attention_heads": 8,
        "num_key_value_heads": 8,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "q_lora_rank": 128,
        "kv_lora_rank": 64,
        "qk_nope_head_dim": 32,
        "qk_rope_head_dim": 16,
        "qk_head_dim": 48,
        "v_head_dim": 32,
        "head_dim": 16,
        "index_n_heads": 8,
        "index_head_dim": 32,
        "index_topk": 256,
        "indexer_rope_interleave": True,
        "rope_interleave": True,
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
        "intermediate_size": 512,
        "moe_intermediate_size": 64,
        "n_routed_experts": 32,
        "num_experts_per_tok": 8,
        "n_shared_experts": 1,
        "n_group": 1,
        "topk_group": 1,
        "moe_layer_freq": 1,
        "norm_topk_prob": True,
        "routed_scaling_factor": 2.5,
        "scoring_func": "sigmoid",
        "topk_method": "noaux_tc",
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "initializer_range": 0.02,
        "max_position_embeddings": 4096,
        "tie_word_embeddings": False,
        "num_nextn_predict_layers": 0,
        "eos_token_id": data["eos_token_id"],
        "pad_token_id": data["eos_token_id"][0],
        "use_cache": True,
        "dtype": "bfloat16",
    }


class RMSNorm(nn.Module):
    def __init__(self, size: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x.float(), self.weight.shape, self.weight, self.eps).to(x.dtype)


def linear(n: int, k: int) -> nn.Linear:
    return nn.Linear(k, n, bias=False)


def rope(x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """Rotates the pairs (2i, 2i+1) of x [B, S, heads, R]; table [2, S, R/2] float32."""
    a, b = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    cos, sin = table[:, :, None, :]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2).to(x.dtype)


class Indexer(nn.Module):
    def __init__(self, c: dict):
        super().__init__()
        self.heads, self.size, self.rotary = c["index_n_heads"], c["index_head_dim"], c["qk_rope_head_dim"]
        self.wq_b = linear(self.heads * self.size, c["q_lora_rank"])
        self.wk = linear(self.size, c["hidden_size"])
        self.k_norm = nn.LayerNorm(self.size, eps=1e-6)
        self.weights_proj = linear(self.heads, c["hidden_size"])

    def forward(self, x: torch.Tensor, q_latent: torch.Tensor, table: torch.Tensor):
        """Queries [B, S, heads, D], keys [B, S, D], head weights [B, S, heads] with both constants folded in."""
        q = self.wq_b(q_latent).unflatten(-1, (self.heads, self.size))
        k = self.k_norm(self.wk(x)).unsqueeze(-2)
        q, k = (torch.cat([rope(t[..., : self.rotary], table), t[..., self.rotary :]], -1) for t in (q, k))
        w = self.weights_proj(x).float() * (self.heads * self.size) ** -0.5
        return q, k.squeeze(-2).to(q.dtype), w

    @staticmethod
    def scores(q: torch.Tensor, k: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        """[B, R, S] float32 for R query rows, one head at a time: [B, R, heads, S] is never held."""
        total = 0.0
        for head in range(q.shape[2]):
            total = total + w[..., head, None] * F.relu(q[:, :, head] @ k.transpose(1, 2)).float()
        return total


class Attention(nn.Module):
    def __init__(self, c: dict):
        super().__init__()
        self.c, self.heads = c, c["num_attention_heads"]
        self.nope, self.rotary, self.v_size = c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["v_head_dim"]
        self.latent = c["kv_lora_rank"]
        hidden, eps = c["hidden_size"], c["rms_norm_eps"]
        self.q_a_proj = linear(c["q_lora_rank"], hidden)
        self.q_a_layernorm = RMSNorm(c["q_lora_rank"], eps)
        self.q_b_proj = linear(self.heads * (self.nope + self.rotary), c["q_lora_rank"])
        self.kv_a_proj_with_mqa = linear(self.latent + self.rotary, hidden)
        self.kv_a_layernorm = RMSNorm(self.latent, eps)
        self.kv_b_proj = linear(self.heads * (self.nope + self.v_size), self.latent)
        self.o_proj = linear(hidden, self.heads * self.v_size)
        self.indexer = Indexer(c)

    def forward(self, x, table, sparse: bool, rows: torch.Tensor | None):
        B, S, _ = x.shape
        q_latent = self.q_a_layernorm(self.q_a_proj(x))
        q = self.q_b_proj(q_latent).unflatten(-1, (self.heads, -1))
        q = torch.cat([q[..., : self.nope], rope(q[..., self.nope :], table)], -1).transpose(1, 2)
        latent, k_rope = self.kv_a_proj_with_mqa(x).split([self.latent, self.rotary], -1)
        k_rope = rope(k_rope.unsqueeze(2), table).expand(-1, -1, self.heads, -1)
        kv = self.kv_b_proj(self.kv_a_layernorm(latent)).unflatten(-1, (self.heads, -1))
        k = torch.cat([kv[..., : self.nope], k_rope], -1).transpose(1, 2)
        v = kv[..., self.nope :].transpose(1, 2)
        scale = (self.nope + self.rotary) ** -0.5

        visible = index = None
        if sparse or rows is not None:
            index = self.indexer(x.detach(), q_latent.detach(), table)
        if sparse and S > self.c["index_topk"]:
            visible = torch.ones(S, S, dtype=torch.bool, device=x.device).tril()
            with torch.no_grad():
                scores = Indexer.scores(*index).masked_fill_(~visible, -torch.inf)
                chosen = torch.zeros_like(scores, dtype=torch.bool)
                chosen.scatter_(-1, scores.topk(self.c["index_topk"], sorted=False).indices, True)
                visible = chosen & visible
        if visible is not None:
            out = F.scaled_dot_product_attention(q, k, v, visible[:, None], scale=scale)
        else:
            # Flash attention wants equal widths; padded value columns come out as zero.
            padded = F.pad(v, (0, q.shape[-1] - self.v_size))
            out = F.scaled_dot_product_attention(q, k, padded, is_causal=True, scale=scale)[..., : self.v_size]
        loss = self.indexer_loss(index, q, k, scale, rows, visible) if rows is not None else None
        return self.o_proj(out.transpose(1, 2).flatten(2)), loss

    def indexer_loss(self, index, q, k, scale, rows, visible):
        """KL divergence of the indexer's softmax from the attention averaged over heads, on some query rows."""
        hidden = torch.arange(q.shape[2], device=q.device) > rows[:, None] if visible is None else ~visible[:, rows]
        with torch.no_grad():
            target = (q[:, :, rows] @ k.transpose(2, 3)).float() * scale
            target = target.masked_fill(hidden if visible is None else hidden[:, None], -torch.inf).softmax(-1).mean(1)
        index_q, index_k, index_w = index
        guess = Indexer.scores(index_q[:, rows], index_k, index_w[:, rows]).masked_fill(hidden, -torch.inf)
        log_guess = guess.log_softmax(-1).masked_fill(hidden, 0.0)
        return (torch.xlogy(target, target) - target * log_guess).sum(-1).mean()


class MLP(nn.Module):
    def __init__(self, hidden: int, width: int):
        super().__init__()
        self.gate_proj, self.up_proj = linear(width, hidden), linear(width, hidden)
        self.down_proj = linear(hidden, width)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Router(nn.Module):
    def __init__(self, c: dict):
        super().__init__()
        self.top, self.scale = c["num_experts_per_tok"], c["routed_scaling_factor"]
        self.weight = nn.Parameter(torch.empty(c["n_routed_experts"], c["hidden_size"]))
        self.register_buffer("e_score_correction_bias", torch.zeros(c["n_routed_experts"]))

    def forward(self, x):
        """Weights [B, S, E], zero for experts not chosen; float32 throughout."""
        with torch.autocast(x.device.type, enabled=False):
            score = (x.float() @ self.weight.float().t()).sigmoid()
            chosen = (score + self.e_score_correction_bias).topk(self.top, sorted=False).indices
            mask = torch.zeros_like(score).scatter_(-1, chosen, 1.0)
            weight = score * mask
            return weight / (weight.sum(-1, keepdim=True) + 1e-20) * self.scale, mask


class MoE(nn.Module):
    def __init__(self, c: dict):
        super().__init__()
        E, I, H = c["n_routed_experts"], c["moe_intermediate_size"], c["hidden_size"]
        self.gate = Router(c)
        self.gate_proj, self.up_proj = nn.Parameter(torch.empty(E, I, H)), nn.Parameter(torch.empty(E, I, H))
        self.down_proj = nn.Parameter(torch.empty(E, H, I))
        self.shared_experts = MLP(H, I * c["n_shared_experts"])
        self.quantized = False  # train against the rounding of NVFP4
        self.load = None  # tokens per expert of the last forward pass
        self.observe = None  # called with (x, activation, mask): calibration

    def experts(self):
        weights = self.gate_proj, self.up_proj, self.down_proj
        if not self.quantized:
            return weights
        gate, up, down = (w + (w.to(torch.bfloat16).float() - w).detach() for w in weights)
        shared = torch.maximum(gate.abs().amax((1, 2)), up.abs().amax((1, 2)))[:, None, None]
        return (
            nvfp4.round_trip(gate, shared),
            nvfp4.round_trip(up, shared),
            nvfp4.round_trip(down, down.abs().amax((1, 2))[:, None, None]),
        )

    def forward(self, x):
        weight, mask = self.gate(x)
        self.load = mask.detach().sum((0, 1))
        gate, up, down = self.experts()
        act = F.silu(F.linear(x, gate.flatten(0, 1))) * F.linear(x, up.flatten(0, 1))
        act = act.unflatten(-1, gate.shape[:2])
        if self.observe is not None:
            self.observe(x, act, mask)
        act = (act * weight.to(act.dtype).unsqueeze(-1)).flatten(-2)
        return F.linear(act, down.transpose(0, 1).flatten(1)) + self.shared_experts(x)


class Layer(nn.Module):
    def __init__(self, c: dict, index: int):
        super().__init__()
        self.input_layernorm = RMSNorm(c["hidden_size"], c["rms_norm_eps"])
        self.self_attn = Attention(c)
        self.post_attention_layernorm = RMSNorm(c["hidden_size"], c["rms_norm_eps"])
        is_dense = index < c["first_k_dense_replace"]
        self.mlp = MLP(c["hidden_size"], c["intermediate_size"]) if is_dense else MoE(c)


class Model(nn.Module):
    def __init__(self, c: dict):
        super().__init__()
        self.c, self.dropout = c, 0.0
        self.model = nn.Module()
        self.model.embed_tokens = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.model.layers = nn.ModuleList(Layer(c, i) for i in range(c["num_hidden_layers"]))
        self.model.norm = RMSNorm(c["hidden_size"], c["rms_norm_eps"])
        self.lm_head = linear(c["vocab_size"], c["hidden_size"])
        half = torch.arange(0, c["qk_rope_head_dim"], 2, dtype=torch.float32) / c["qk_rope_head_dim"]
        angle = torch.outer(torch.arange(c["max_position_embeddings"]).float(),
                            c["rope_parameters"]["rope_theta"] ** -half)  # fmt: skip
        self.register_buffer("table", torch.stack([angle.cos(), angle.sin()]), persistent=False)
        self.initialize()

    @torch.no_grad()
    def initialize(self) -> None:
        depth = (2 * self.c["num_hidden_layers"]) ** -0.5
        for name, p in self.named_parameters():
            if p.ndim < 2:
                continue
            std = p.shape[-1] ** -0.5
            if name.endswith(("o_proj.weight", "down_proj.weight", "mlp.down_proj")):
                std *= depth
            if name.endswith("embed_tokens.weight"):
                std = 0.5
            if name.endswith(("lm_head.weight", "mlp.gate.weight")):
                std = 0.02
            p.normal_(0.0, std)

    def moe_layers(self) -> list[MoE]:
        return [layer.mlp for layer in self.model.layers if isinstance(layer.mlp, MoE)]

    def forward(self, tokens, sparse: bool = True, rows: torch.Tensor | None = None):
        """Logits [B, S, V] and the indexer's loss over query `rows` (zero without)."""
        drop = lambda t: F.dropout(t, self.dropout, self.training)  # noqa: E731
        h = drop(self.model.embed_tokens(tokens))
        table = self.table[:, : tokens.shape[1]]
        indexer_loss = h.new_zeros(())
        for layer in self.model.layers:
            out, loss = layer.self_attn(layer.input_layernorm(h), table, sparse, rows)
            h = h + drop(out)
            h = h + drop(layer.mlp(layer.post_attention_layernorm(h)))
            if loss is not None:
                indexer_loss = indexer_loss + loss
        return self.lm_head(self.model.norm(h)), indexer_loss


def nll_of_windows(model: Model, windows: torch.Tensor, batch: int, sparse: bool = True) -> torch.Tensor:
    """Negative log-likelihood in nats of positions 1.. of each window [W, S] -> [W, S-1]."""
    model.eval()
    out = []
    with torch.no_grad():
        for piece in windows.split(batch):
            logits, _ = model(piece, sparse)
            out.append(F.cross_entropy(logits[:, :-1].float().transpose(1, 2), piece[:, 1:], reduction="none"))
    return torch.cat(out)


def perplexity(nll: torch.Tensor) -> float:
    return math.exp(nll.double().mean().item())
