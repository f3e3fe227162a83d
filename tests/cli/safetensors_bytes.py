"""Checkpoints as bytes, with the standard library alone."""
import hashlib
import json
import pathlib
import struct


def read_tensors(folder):
    """name -> (dtype, shape, bytes) over all safetensors files of a folder."""
    tensors = {}
    for path in sorted(pathlib.Path(folder).glob("*.safetensors")):
        data = path.read_bytes()
        (header_bytes,) = struct.unpack("<Q", data[:8])
        header = json.loads(data[8:8 + header_bytes])
        body = data[8 + header_bytes:]
        for name, entry in header.items():
            if name != "__metadata__":
                begin, end = entry["data_offsets"]
                tensors[name] = (entry["dtype"], entry["shape"], body[begin:end])
    return tensors


def write_tensors(path, tensors):
    """The reverse, one file; also for entries that lie about their shape."""
    header, body = {}, b""
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # so that every tensor is aligned
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + body)


def module_hashes(folder):
    """SHA-256 of weight, weight_scale and weight_scale_2 of every module that has a scale."""
    tensors = read_tensors(folder)
    hashes = {}
    for name in sorted(tensors):
        if not name.endswith(".weight_scale"):
            continue
        module = name[:-len(".weight_scale")]
        digest = hashlib.sha256()
        for suffix in (".weight", ".weight_scale", ".weight_scale_2"):
            if module + suffix in tensors:
                dtype, shape, data = tensors[module + suffix]
                digest.update(f"{suffix} {dtype} {shape}".encode() + data)
        hashes[module] = digest.hexdigest()
    return hashes
