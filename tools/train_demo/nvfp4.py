"""NVFP4 in ModelOpt's layout: 16-element blocks along K, e4m3 block scales, one float32 scale per tensor."""

import torch

BLOCK = 16
MAX_E2M1 = 6.0
MAX_E4M3 = 448.0
VALUES = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]


def codes(x: torch.Tensor) -> torch.Tensor:
    """Magnitude codes 0..7, round to nearest, ties to the even code, saturating."""
    a = x.abs()
    c = (a > 0.25).to(torch.uint8)
    for bound, is_even_above in ((0.75, True), (1.25, False), (1.75, True), (2.5, False), (3.5, True), (5.0, False)):
        c += (a >= bound) if is_even_above else (a > bound)
    return c


def scales(w: torch.Tensor, scale_2: torch.Tensor) -> torch.Tensor:
    """Block scales [..., K/16] as e4m3. `scale_2` broadcasts over them."""
    amax = w.unflatten(-1, (-1, BLOCK)).abs().amax(-1).float()
    s = amax / (MAX_E2M1 * scale_2)
    s = torch.where(s == 0, 1.0, s)
    return s.clamp(2.0**-9, MAX_E4M3).to(torch.float8_e4m3fn)


def scale_2_of(amax: torch.Tensor) -> torch.Tensor:
    return amax.float() / (MAX_E2M1 * MAX_E4M3)


def quantize(w: torch.Tensor, scale_2: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """w [N, K] -> (packed [N, K/2] uint8, low nibble first; scales [N, K/16] e4m3)."""
    s = scales(w, scale_2)
    x = w.float().unflatten(-1, (-1, BLOCK)) / (s.float() * scale_2).unsqueeze(-1)
    c = (codes(x) | ((x < 0).to(torch.uint8) << 3)).flatten(-2)
    return c[..., 0::2] | (c[..., 1::2] << 4), s


def dequantize(packed: torch.Tensor, s: torch.Tensor, scale_2: torch.Tensor) -> torch.Tensor:
    table = torch.tensor(VALUES + [-v for v in VALUES], dtype=torch.float32, device=packed.device)
    c = torch.stack([packed & 15, packed >> 4], -1).flatten(-2)
    return (table[c.int()].unflatten(-1, (-1, BLOCK)) * (s.float() * scale_2).unsqueeze(-1)).flatten(-2)


def round_trip(w: torch.Tensor, amax: torch.Tensor) -> torch.Tensor:
    """What quantize and dequantize give, with a straight-through gradient. `amax` broadcasts over [..., N, K/16]."""
    with torch.no_grad():
        x = w.float()
        scale_2 = scale_2_of(amax)
        step = (scales(x, scale_2).float() * scale_2).unsqueeze(-1)
        blocks = x.unflatten(-1, (-1, BLOCK)) / step
        table = torch.tensor(VALUES, dtype=torch.float32, device=w.device)
        q = (table[codes(blocks).int()] * blocks.sign() * step).flatten(-2)
    return w + (q - w).detach()
