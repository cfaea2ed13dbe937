"""compare_files.py: a .safetensors file as perf/compare sees it: bytes, tensors, and a small one of the same kind to warm up on.

SPDX-License-Identifier: Apache-2.0
"""
import hashlib
import json
import struct

WORD_NBYTES = {"F64": 8, "I64": 8, "U64": 8, "C64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2, "U16": 2}     # others: 1


def layout(data):
    """Tensors in the order of their bytes: (name, dtype, shape, begin, end); begin and end are offsets in the file."""
    n, = struct.unpack("<Q", bytes(data[:8]))
    header = json.loads(bytes(data[8:8 + n]))
    found = [(name, t["dtype"], t["shape"], 8 + n + t["data_offsets"][0], 8 + n + t["data_offsets"][1])
             for name, t in header.items() if name != "__metadata__"]
    return sorted(found, key=lambda t: (t[3], t[4]))


def segments(data):
    """The whole file in pieces (name, dtype, begin, end): tensors that hold something, and what lies between them, with name and dtype None."""
    pieces, at = [], 0
    for name, dtype, _, begin, end in layout(data):
        if begin > at:
            pieces.append((None, None, at, begin))
        if end > begin:
            pieces.append((name, dtype, begin, end))
        at = max(at, end)
    return pieces + [(None, None, at, len(data))] * (at < len(data))


def join(tensors):
    """A file of tensors (name, dtype, shape, bytes)."""
    header, at = {}, 0
    for name, dtype, shape, data in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(data for *_, data in tensors)


def miniature(data, nbytes=1 << 20):
    """A file of a few of its tensors, all types among them if they are small enough."""
    taken, kinds, total = [], {}, 0
    for name, dtype, shape, begin, end in sorted(layout(data), key=lambda t: t[3] - t[4]):
        if end - begin <= nbytes - total and kinds.get(dtype, 0) < 4:
            taken.append((name, dtype, shape, bytes(data[begin:end])))
            kinds[dtype], total = kinds.get(dtype, 0) + 1, total + end - begin
    return join(taken)


def tensor_hashes(data):
    return {name: (dtype, shape, sha256(data[begin:end])) for name, dtype, shape, begin, end in layout(data)}


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def file_sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
