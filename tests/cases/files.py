"""files.py: the table of awkward files: what may be done with each, and why.

    case(name, outcomes, reason, function that gives the bytes)

Outcomes: KEEP, it comes back byte for byte; REFUSE, exit code 3 or 6, one line on stderr, no output. Where both stand, readers in the world
disagree and either is right, but a third thing never is. SPDX-License-Identifier: Apache-2.0
"""
import json
import random
import struct
from typing import Callable, NamedTuple

from craft import BITS, bf16_weights, checkpoint, entry, f32_weights, frame, noise, one

KEEP, REFUSE = "keep", "refuse"


class Case(NamedTuple):
    name: str
    outcomes: tuple
    reason: str
    make: Callable


FILES, BIG, TREES = [], [], []


def case(name, outcomes, reason, make, table=FILES):
    table.append(Case(name, outcomes if isinstance(outcomes, tuple) else (outcomes,), reason, make))


# ---- the frame: length, header, data

case("f01-empty", REFUSE, "what an interrupted download leaves", lambda: b"")
case("f02-seven-bytes", REFUSE, "ends inside the length", lambda: b"\x10\0\0\0\0\0\0")
case("f03-no-header", REFUSE, "a header of length 0 is not JSON", lambda: bytes(8))
case("f04-header-longer-than-file", REFUSE, "a cut download or another kind of file",
     lambda: frame("{" + entry("BF16", [2], 0, 4) + "}", bytes(4), length=5000))
case("f05-header-length-2^64-1", REFUSE, "8 + length must not wrap, and nothing of that size be allocated", lambda: frame("{}", length=2**64 - 1))
case("f07-name-not-utf8", REFUSE, "JSON is UTF-8", lambda: frame(b'{"a\xff":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"A"))
case("f09-header-padded-with-nul", (REFUSE, KEEP), "strict readers refuse it; NULs must not come back as spaces",
     lambda: one("BF16", [2], 0, 4, b"abcd", tail="\0" * 5))
case("f10-three-spaces-behind-header", KEEP, "the usual padding", lambda: one("BF16", [4], 0, 8, bf16_weights(4), tail=" " * 3))
case("f11-header-padded-to-1MiB", KEEP, "legal, leaves room for edits; must cost bytes, not a megabyte",
     lambda: one("BF16", [4096], 0, 8192, bf16_weights(4096), tail=" " * (2**20 - len(entry("BF16", [4096], 0, 8192)) - 2)))
case("f12-space-before-header", (REFUSE, KEEP), "the format asks for '{' first, not every reader does; it must not vanish",
     lambda: one("BF16", [4], 0, 8, bf16_weights(4), lead="  "))
case("f13-header-written-oddly", KEEP, "line breaks, escapes and any order of keys are JSON, and are part of the file",
     lambda: frame('{\n\t"\\u0061\\/b" : { "shape" : [ 2 , 2 ],\r\n "data_offsets":[0, 8], "dtype":"BF16" } ,\n'
                   ' "__metadata__": {"z":"1","a":"\\u00e9\\n", "m":"\xe9"},\n "w.1":{"data_offsets":[8,16],"dtype":"F32","shape":[2]}\n}\n ',
                   bf16_weights(4) + f32_weights(2)))
case("f14-header-not-in-data-order", KEEP, "tensors are named in one order and stored in another",
     lambda: checkpoint(("b", "BF16", [64], bf16_weights(64)), ("a", "F32", [16], f32_weights(16)), ("c", "U8", [8], noise(8)), order=[2, 0, 1]))
case("f15-name-twice", (REFUSE, KEEP), "readers take the first, the last or neither",
     lambda: frame("{" + entry("BF16", [2], 0, 4) + "," + entry("BF16", [2], 4, 8) + "}", bf16_weights(4)))
case("f16-entry-twice", (REFUSE, KEEP), "the reference takes it; its data is there once",
     lambda: frame("{" + entry("BF16", [2], 0, 4) + "," + entry("BF16", [2], 0, 4) + "}", bf16_weights(2)))
case("f18-metadata-alone", KEEP, "a checkpoint without tensors", lambda: checkpoint(metadata={"format": "pt", "key": "value"}))
case("f19-empty-object", KEEP, "a checkpoint without anything", lambda: frame("{}      "))
case("f43-deep-nesting", REFUSE, "100,000 brackets must not use up the stack", lambda: frame('{"t":' + "[" * 100_000 + "]" * 100_000 + "}"))
case("f53-starts-like-zlib", KEEP, "a header of 0x9c78 bytes: two bytes do not tell what a file is",
     lambda: one("BF16", [4], 0, 8, bf16_weights(4), tail=" " * (0x9c78 - len(entry("BF16", [4], 0, 8)) - 2)))

# ---- where tensors lie

case("f20-overlap", REFUSE, "two tensors share bytes",
     lambda: frame("{" + entry("BF16", [4], 0, 8, "a") + "," + entry("BF16", [4], 4, 12, "b") + "}", noise(12)))
case("f21-hole", (REFUSE, KEEP), "bytes of no tensor, not zero: refused or kept, never lost",
     lambda: frame("{" + entry("BF16", [2], 0, 4, "a") + "," + entry("F32", [2], 8, 16, "b") + "}", noise(16)))
case("f23-bytes-behind-the-end", (REFUSE, KEEP), "the same at the end", lambda: checkpoint(("t", "BF16", [64], bf16_weights(64))) + b"sixteen bytes more")
case("f24-last-byte-missing", REFUSE, "the most common damage", lambda: checkpoint(("t", "BF16", [64], bf16_weights(64)))[:-1])
case("f25-end-before-begin", REFUSE, "offsets [8,4]", lambda: one("BF16", [2], 8, 4, noise(8)))
case("f26-shape-overflows", REFUSE, "2^32 * 2^32 * 2 is 0 modulo 2^64, which fits the empty range", lambda: one("U8", [2**32, 2**32, 2], 0, 0))
case("f27-shape-larger-than-range", REFUSE, "four bytes for a million elements", lambda: one("F32", [1000, 1000], 0, 4, bytes(4)))
case("f28-negative-numbers", REFUSE, "sizes and offsets have no sign", lambda: one("BF16", [-2], -4, 0, noise(4)))
case("f33-half-a-byte", REFUSE, "three 4-bit elements do not end with a byte", lambda: one("F4", [3], 0, 2, noise(2)))
case("f45-odd-bytes-of-bf16", REFUSE, "three bytes of two-byte elements", lambda: one("BF16", [1], 0, 3, noise(3)))
case("f46-unaligned", KEEP, "legal: words at odd offsets of the file",
     lambda: checkpoint(("u", "U8", [3], b"abc"), ("w", "BF16", [1001], bf16_weights(1001)), ("f", "F32", [33], f32_weights(33)), align=1))

# ---- types, shapes, names

case("f31-unknown-field", KEEP, "readers ignore it, the file has it",
     lambda: frame('{"t":{"dtype":"BF16","shape":[4],"data_offsets":[0,8],"quant":{"bits":[4,4]}}} ', bf16_weights(4)))
case("f32-every-type", KEEP, "all 22, random bits",
     lambda: checkpoint(*[(t.lower(), t, [4, 16], noise(8 * bits, i)) for i, (t, bits) in enumerate(BITS.items())], metadata={"format": "pt"}))
case("f34-blocks-and-scales", KEEP, "4-bit blocks and their 8-bit exponents",
     lambda: checkpoint(("w.blocks", "F4", [128, 64], noise(4096, 5)), ("w.scales", "F8_E8M0", [128, 2], bytes(118 + b % 4 for b in noise(256, 6)))))
case("f35-scalars", KEEP, "the shape [] is one element",
     lambda: checkpoint(("s", "F32", [], f32_weights(1)), ("step", "I64", [], struct.pack("<q", -7))))
case("f36-tensors-without-elements", KEEP, "first, last and between",
     lambda: checkpoint(("e0", "F8_E4M3", [0], b""), ("a", "BF16", [8], bf16_weights(8)), ("e1", "BF16", [2, 0], b""), ("e2", "F32", [0, 4], b""),
                        ("b", "F32", [2], f32_weights(2)), ("e3", "U8", [0], b"")))
case("f37-empty-and-long-name", KEEP, "names of 0 and 65,536 bytes",
     lambda: checkpoint(("", "U8", [1], b"A"), ("n" * 65536, "BF16", [4], bf16_weights(4))))
case("f38-nul-in-name", (KEEP, REFUSE), "to a C string the two names are one",
     lambda: frame('{"model\\u0000hidden":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},"model":{"dtype":"BF16","shape":[2],"data_offsets":[4,8]}} ',
                   bf16_weights(4)))
case("f40-100000-tensors", KEEP, "the header is the file: time and size must grow with it and no faster",
     lambda: checkpoint(*[(f"model.layers.{i // 1000}.experts.{i % 1000}.w", "BF16", [1], struct.pack("<H", 0x3c00 + i % 77)) for i in range(100_000)]))

# ---- values


def every_bf16():
    words = list(range(65536))
    random.Random(3).shuffle(words)
    return checkpoint(("p", "BF16", [256, 256], struct.pack("<65536H", *words)))


def constants():
    words = dict(zero=b"\0\0", minus_zero=b"\0\x80", infinity=b"\x80\x7f")
    return checkpoint(*[(name, "BF16", [5000], word * 5000) for name, word in words.items()], ("one", "F32", [5000], struct.pack("<f", 1) * 5000))


def around_blocks():
    sizes = [n + d for n in (2, 64, 256, 4096, 32768, 65536, 131072) for d in (-1, 0, 1)]
    return checkpoint(*[(f"n{n}", "BF16", [n], bf16_weights(n, n)) for n in sizes])


def skewed():
    rare = bytearray(b"\x11\x3c" * 200_000)
    rare[123_457] = 0xbf
    low, high = noise(100_000, 9), noise(100_000, 10)
    two = b"".join(bytes((a, b"\x3c\xbc"[b & 1])) for a, b in zip(low, high))
    flat = b"".join(bytes((0, i % 256)) for i in range(100_000))
    return checkpoint(("rare", "BF16", [200_000], bytes(rare)), ("two", "BF16", [100_000], two), ("flat", "BF16", [100_000], flat))


def weights():
    return checkpoint(*[(f"w.{i}", "BF16", [512, 512], bf16_weights(512 * 512, i)) for i in range(4)], metadata={"format": "pt"})


case("f47-every-bf16-word", KEEP, "each NaN payload, -0 and denormal: bits are kept, not values", every_bf16)
case("f48-constants", KEEP, "alphabets of one symbol", constants)
case("f49-noise", KEEP, "nothing to gain; stored, at next to no cost", lambda: checkpoint(("r", "BF16", [512, 1024], noise(2**20))))
case("f50-weights", KEEP, "the ordinary case", weights)
case("f56-around-block-sizes", KEEP, "tails of vector loops and ends of chunks", around_blocks)
case("f57-skewed-alphabets", KEEP, "one rare symbol, two symbols, 256 equal ones", skewed)


# ---- big: sparse files, only with --big; made in place


def with_equal_rows():
    """An embedding, the same with rows before and behind it, and a piece of that."""
    base, before, behind = bf16_weights(600 * 512, 1), bf16_weights(3 * 512, 2), bf16_weights(100 * 512, 3)
    return checkpoint(("a", "BF16", [600, 512], base), ("b", "BF16", [703, 512], before + base + behind), ("c", "BF16", [600, 512], base),
                      ("d", "BF16", [500, 512], base[50 * 1024:550 * 1024]), ("e", "I16", [600, 512], base), ("f", "BF16", [1200, 256], base))


case("f58-equal-rows", KEEP, "rows of one tensor in another, at other places, under other shapes and types", with_equal_rows)


def huge_header(path):
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", 100_000_001) + b"{}")
        file.truncate(8 + 100_000_001)


def huge_tensor(path):
    n = 2**31 + 3
    with open(path, "wb") as file:
        file.write(one("BF16", [n], 0, 2 * n))
        start = file.tell()
        for offset in (0, 2**31 - 2, 2**31, 2**32 - 2, 2**32, 2 * n - 2):
            file.seek(start + offset)
            file.write(b"\x5a\x3c")


case("b01-header-over-100MB", (REFUSE, KEEP), "more than the reference takes: a clear limit, or it works", huge_header, BIG)
case("b02-tensor-over-4GiB", KEEP, "sizes beyond 32 bits, marks around 2 and 4 GiB", huge_tensor, BIG)


# ---- directories: made in place

SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")


def sharded(model, leave_out=()):
    model.mkdir(parents=True)
    owner = {}
    for i, shard in enumerate(SHARDS):
        tensors = [(f"layers.{i}.w{j}", "BF16", [64, 64], bf16_weights(4096, 10 * i + j)) for j in range(3)]
        owner |= {name: shard for name, *_ in tensors}
        if shard not in leave_out:
            (model / shard).write_bytes(checkpoint(*tensors, metadata={"format": "pt"}))
    index = {"metadata": {"total_size": len(owner) * 8192}, "weight_map": owner}
    (model / "model.safetensors.index.json").write_text(json.dumps(index, indent=2))
    (model / "config.json").write_text('{"architectures": ["X"],  "torch_dtype":"bfloat16"}\n')
    (model / "tokenizer.json").write_text(noise(300, 4).hex())


def with_extra_shard(model):
    sharded(model)
    (model / "model.safetensors").write_bytes(checkpoint(("old", "BF16", [64], bf16_weights(64))))


def with_links(model):
    (model / "blobs").mkdir(parents=True)
    (model / "snapshots" / "abc").mkdir(parents=True)
    (model / "blobs" / "0123abcd").write_bytes(checkpoint(("t", "BF16", [4096], bf16_weights(4096))))
    (model / "snapshots" / "abc" / "model.safetensors").symlink_to("../../blobs/0123abcd")


case("d01-shards", KEEP, "two shards, their index, other files: the same tree comes back", sharded, TREES)
case("d02-shard-missing", REFUSE, "said before the work, with the shard's name", lambda model: sharded(model, leave_out=SHARDS[1:]), TREES)
case("d03-shard-not-in-index", KEEP, "a warning, and the file comes back too", with_extra_shard, TREES)
case("d04-links-to-blobs", KEEP, "read through the link; the blob stays as it is", with_links, TREES)
