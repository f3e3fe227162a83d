"""Compares every conversion of src/numerics with ml-dtypes and NumPy: all codes, and around every tie.

usage: compare_with_ml_dtypes.py PROGRAM   (PROGRAM is numerics_convert)
"""
import subprocess
import sys

import ml_dtypes
import numpy as np

PROGRAM = sys.argv[1]
failures = 0


def convert(operation, values, result_type, *arguments):
    output = subprocess.run([PROGRAM, operation, *map(str, arguments)], input=values.tobytes(),
                            stdout=subprocess.PIPE, check=True).stdout
    return np.frombuffer(output, dtype=result_type)


def expect_equal(what, inputs, found, expected):
    global failures
    found = np.ascontiguousarray(found).view(f"u{found.itemsize}")
    expected = np.ascontiguousarray(expected).view(f"u{expected.itemsize}")
    assert found.shape == expected.shape, (what, found.shape, expected.shape)
    wrong = np.nonzero(found != expected)[0]
    print(f"{what}: {len(found)} values, {len(wrong)} differ")
    for i in wrong[:5]:
        print(f"  {inputs[i]!r}: found {found[i]:#x}, expected {expected[i]:#x}")
    failures += len(wrong) > 0


def probes(representable):
    """Each value of a format, each point halfway between neighbours, a float32 step beside each; every bfloat16; random
    float32 patterns."""
    values = np.unique(representable[np.isfinite(representable)].astype(np.float32))
    halfway = ((values[:-1].astype(np.float64) + values[1:]) / 2).astype(np.float32)
    points = np.concatenate([values, halfway])
    patterns = np.random.default_rng(1).integers(0, 1 << 32, 200_000, dtype=np.uint32).view(np.float32)
    every_bf16 = np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16).astype(np.float32)
    beside = [np.nextafter(points, np.float32(side), dtype=np.float32) for side in (-np.inf, np.inf)]
    every = np.concatenate([points, *beside, every_bf16, patterns])
    return every[~np.isnan(every)]


def check(name, code_type, format_type, limit, nan_code):
    num_codes = 16 if name == "e2m1" else 1 << (8 * np.dtype(code_type).itemsize)
    codes = np.arange(num_codes, dtype=code_type)
    decoded = codes.view(format_type).astype(np.float32)
    found = convert(f"from_{name}", codes, np.float32)
    is_nan = np.isnan(decoded)
    expect_equal(f"from_{name}", codes, found[~is_nan], decoded[~is_nan])
    expect_equal(f"from_{name}, NaN", codes, np.isnan(found), is_nan)

    values = probes(decoded)
    clipped = np.clip(values, -limit, limit) if limit else values
    with np.errstate(over="ignore"):
        expected = clipped.astype(format_type).view(code_type)
    expect_equal(f"to_{name}", values, convert(f"to_{name}", values, code_type), expected)

    nans = np.array([0x7fc00000, 0xffc00000, 0x7f800001, 0xff800001, 0x7fffffff], np.uint32).view(np.float32)
    found = convert(f"to_{name}", nans, code_type)
    if nan_code is None:
        with np.errstate(invalid="ignore"):
            expect_equal(f"to_{name}, NaN", nans, np.isnan(found.view(format_type).astype(np.float32)), np.isnan(nans))
    else:
        expect_equal(f"to_{name}, NaN", nans, found, np.full(len(nans), nan_code, code_type))


def check_e8m0():
    codes = np.arange(256, dtype=np.uint8)
    decoded = codes.view(ml_dtypes.float8_e8m0fnu).astype(np.float32)
    found = convert("from_e8m0", codes, np.float32)
    expect_equal("from_e8m0", codes[:255], found[:255], decoded[:255])
    expect_equal("from_e8m0, NaN", codes[255:], np.isnan(found[255:]), np.isnan(decoded[255:]))

    values = probes(decoded)
    values = values[values >= 0]
    powers = decoded[:255].astype(np.float64)
    expected = np.minimum(np.searchsorted(powers, values.astype(np.float64)), 254).astype(np.uint8)
    expect_equal("to_e8m0_ceil", values, convert("to_e8m0_ceil", values, np.uint8), expected)
    bad = np.array([np.nan, -1.0, -np.inf, -1e-45], np.float32)
    expect_equal("to_e8m0_ceil, NaN", bad, convert("to_e8m0_ceil", bad, np.uint8), np.full(4, 255, np.uint8))


def check_scale_layout():
    """The layout as frameworks define it: pad, view as [M/128, 4, 32, K/4, 4], exchange the axes."""
    for rows, blocks in [(128, 4), (256, 8), (1, 1), (130, 5), (33, 12), (384, 3), (2048, 24)]:
        scales = np.random.default_rng(rows).integers(1, 256, (rows, blocks), dtype=np.uint8)
        padded = np.zeros((-(-rows // 128) * 128, -(-blocks // 4) * 4), np.uint8)
        padded[:rows, :blocks] = scales
        tiles = padded.reshape(padded.shape[0] // 128, 4, 32, padded.shape[1] // 4, 4)
        expected = tiles.transpose(0, 3, 2, 1, 4).ravel()
        expect_equal(f"tile_scales [{rows}, {blocks}]", expected,
                     convert("tile_scales", scales, np.uint8, rows, blocks), expected)


check("bf16", np.uint16, ml_dtypes.bfloat16, None, None)
check("fp16", np.uint16, np.float16, None, None)
check("e4m3", np.uint8, ml_dtypes.float8_e4m3fn, 448.0, 0x7f)
check("e2m1", np.uint8, ml_dtypes.float4_e2m1fn, 6.0, 7)
check_e8m0()
check_scale_layout()
sys.exit(1 if failures else 0)
