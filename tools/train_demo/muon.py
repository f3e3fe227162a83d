"""Muon: momentum made orthogonal, for weight matrices. Everything else of the model is left to AdamW."""

import torch


def orthogonal(g: torch.Tensor, steps: int = 5) -> torch.Tensor:
    """Nearest semi-orthogonal matrices of g [n, rows, cols], by a quintic Newton-Schulz iteration (bfloat16 on a GPU)."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g.bfloat16() if g.is_cuda else g.float()
    is_tall = x.shape[-2] > x.shape[-1]
    x = x.mT if is_tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return (x.mT if is_tall else x).float()


class Muon(torch.optim.Optimizer):
    """Matrices [rows, cols] or stacks [n, rows, cols]. The update's RMS is about 0.2, so AdamW's rate and decay fit."""

    def __init__(self, params, lr: float, weight_decay: float, momentum: float = 0.95):
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            by_shape: dict[tuple, list[torch.Tensor]] = {}
            for p in group["params"]:
                if p.grad is not None:
                    by_shape.setdefault(tuple(p.shape), []).append(p)
            for params in by_shape.values():
                grads = [p.grad for p in params]
                buffers = [self.state[p].setdefault("momentum", torch.zeros_like(p)) for p in params]
                torch._foreach_lerp_(buffers, grads, 1 - group["momentum"])
                looked_ahead = torch._foreach_lerp(grads, buffers, group["momentum"])
                stack = torch.stack(looked_ahead)
                rows, cols = stack.shape[-2:]
                update = orthogonal(stack.view(-1, rows, cols)).view_as(stack) * (0.2 * max(rows, cols) ** 0.5)
                torch._foreach_mul_(params, 1 - group["lr"] * group["weight_decay"])
                torch._foreach_add_(params, list(update.unbind()), alpha=-group["lr"])
