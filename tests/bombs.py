#!/usr/bin/env python3
"""bombs.py: small files that claim to be huge, and large ones that are right.

    bombs.py [NAME...]        NAME: only cases whose names begin so

Each bomb is run with a limit on processor time and its memory is measured: refused in one line within 64 MiB, or, where it is legal, kept
within what -M allows. SPDX-License-Identifier: Apache-2.0
"""
import os
import resource
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases"))
from craft import checkpoint, frame
from reference_decoder import find_xxh3
from tap import BREVIS, BUILD, SYNTH, Suite, check, same, succeed

MIB = 1 << 20
MOST_NBYTES, CPU_SECONDS = 64 * MIB, 20         # a sanitizer's shadow and slowness are not the archive's: see SANITIZED
SANITIZED = "asan" in BUILD.name
xxh3 = find_xxh3()
BOMBS, SYNTH_BOMBS = [], []

# ---- A writer of archives that says what it is told to (docs/FORMAT.md, 2 to 4)


def varint(n):
    out = bytearray()
    while n >= 128:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def instruction(op, width, nargs=0, imm=0, flags=0, aux=0):
    return struct.pack("<BBBBIQ", op, width, nargs, flags, aux, imm)


LIT_RAW, LIT_HUFF, LIT_WIDE, CONST, REPEAT, REF, MAP_XOR, MAP_ADD, SCAN_ADD, MERGE = 1, 3, 5, 0x10, 0x12, 0x13, 0x20, 0x21, 0x31, 0x40


def program(*instructions, count=None):
    return varint(len(instructions) if count is None else count) + b"".join(instructions)


def section(entries, count=None):
    return varint(len(entries) if count is None else count) + b"".join(entries)


def tensor(name, ndims, width, chunk, nprograms, chunks, dtype=4, distance=0):
    """A record whose name follows in the index; ndims: the shape, or bytes as they are."""
    shape = ndims if isinstance(ndims, bytes) else varint(len(ndims)) + b"".join(map(varint, ndims))
    return (b"\2" + varint(0) + varint(len(name) * 2 + 1) + name + bytes([dtype]) + shape + bytes([width]) + varint(chunk) + varint(0) + varint(1) +
            varint(nprograms) + chunks)


def header(nwords, chunk, chunks, number=0):
    return b"\0" + varint(nwords) + b"\x08" + varint(chunk) + varint(1) + varint(number) + chunks


def digits(n):
    """A number of a packed header."""
    return bytes([n & 63 | 64]) + digits(n >> 6) if n > 63 else bytes([n])


def archive(code, indx, nchunks, tabl=b"\0", payload=b"", claims=None, sums=None, flags=0):
    """claims: by section number, (form, stored size, decoded size)."""
    sections = [code, tabl, indx, bytes(8 * nchunks) if sums is None else sums]
    sizes = [(claims or {}).get(i, (0, len(s), len(s))) for i, s in enumerate(sections)]
    stored = b"".join(sections)
    total = 144 + sum(size[1] for size in sizes) + len(payload)
    head = b"\x93BRV\r\n\x1a\n" + struct.pack("<HHIQQ", 2 if flags else 1, flags, 144, total % 2**64, len(payload))
    head += b"".join(struct.pack("<QQQ", *size) for size in sizes) + struct.pack("<Q", xxh3(stored))
    return head + struct.pack("<Q", xxh3(head)) + stored + payload


EMPTY_HEADER = b"{}"
RAW8 = program(instruction(LIT_RAW, 8))
ZERO8, ZERO64 = program(instruction(CONST, 8)), program(instruction(CONST, 64))
HEAD = header(2, 0, varint(2))


def sum_of(*chunks):
    return b"".join(struct.pack("<Q", xxh3(chunk)) for chunk in chunks)


def bomb(name, outcome, what, make, table=BOMBS):
    """outcome: exit codes of `test`; a "-M SIZE" with a code is asked for as well."""
    table.append((name, outcome, what, make))


def packed_header(packed, flags, *tensors):
    return archive(section([RAW8, ZERO8]), section([header(len(packed), 0, varint(len(packed))), *tensors]), 1 + len(tensors), payload=packed,
                   sums=sum_of(packed) + bytes(8 * len(tensors)), flags=flags)


def one_tensor(dims, width, chunk, nchunks, code, chunks=b"", payload=b"", **more):
    """The header {} and a tensor; nchunks: all chunks that have a sum."""
    return archive(section([RAW8, code]), section([HEAD, tensor(b"t", dims, width, chunk, 1, chunks)]), nchunks, payload=EMPTY_HEADER + payload, **more)


def terabyte():
    """2^40 bytes of zeros that are what they say: 131,072 chunks of 8 MiB."""
    zeros = struct.pack("<Q", xxh3(bytes(8 * MIB)))
    return one_tensor([1 << 40], 64, 1 << 20, 0, ZERO64, b"\0" * 131072, sums=sum_of(EMPTY_HEADER) + zeros * 131072)


def deep(op, n, width=64):
    return program(instruction(CONST, width), *[instruction(op, width, 1, 3) for _ in range(n)])


def wide_tree():
    """Merges of merges: 63 instructions, many registers at a time, each of 2^20 words of 8 bytes."""
    return program(instruction(CONST, 33), *[instruction(LIT_RAW, 1) for _ in range(15)], instruction(MERGE, 48, 16), *[instruction(LIT_RAW, 1) for _ in range(15)],
                   instruction(MERGE, 63, 16), instruction(LIT_RAW, 1), instruction(MERGE, 64, 2))


bomb("terabyte-claimed", [4], "a terabyte in a chunk record of one byte", lambda: one_tensor([1 << 40], 8, 1 << 20, 2, ZERO8, b"\0"))
bomb("exabytes-claimed", [4], "2^62 bytes", lambda: one_tensor([1 << 62], 64, 1 << 20, 2, ZERO64, b"\0"))
bomb("shape-overflows", [4], "2^32 * 2^32 * 2^32", lambda: one_tensor([1 << 32] * 3, 8, 1 << 20, 2, ZERO8, b"\0"))
bomb("chunk-of-2^40-words", [4], "chunks beyond the limit", lambda: one_tensor([1 << 40], 8, 1 << 40, 2, ZERO8, b"\0"))
bomb("dims-claimed", [4], "2^63 dimensions in no bytes", lambda: one_tensor(varint(1 << 63), 8, 0, 2, ZERO8))
bomb("dims-65535", [4], "65,535 dimensions of 2^63", lambda: one_tensor([1 << 63] * 65535, 8, 0, 2, ZERO8))
bomb("programs-claimed", [4], "2^32 programs in no bytes",
     lambda: archive(section([RAW8], 1 << 32), section([HEAD]), 1, payload=EMPTY_HEADER))
bomb("programs-65536", [6], "more programs than numbers for them",
     lambda: archive(section([RAW8] * 65536), section([HEAD]), 1, payload=EMPTY_HEADER))
bomb("instructions-claimed", [4], "2^60 instructions", lambda: archive(section([program(count=1 << 60)]), section([HEAD]), 1, payload=EMPTY_HEADER))
bomb("program-of-65", [4], "a program longer than any may be", lambda: one_tensor([8], 64, 0, 2, deep(MAP_XOR, 64), b"\0"))
bomb("tables-claimed", [4], "2^32 tables in no bytes", lambda: archive(section([RAW8]), section([HEAD]), 1, tabl=varint(1 << 32), payload=EMPTY_HEADER))
bomb("tables-65536", [6], "more tables than may be", lambda: archive(section([RAW8]), section([HEAD]), 1, tabl=section([b"\1\0"] * 65536), payload=EMPTY_HEADER))
bomb("table-claimed", [4], "a table of 2^60 bytes", lambda: archive(section([RAW8]), section([HEAD]), 1, tabl=varint(1) + b"\1" + varint(1 << 60),
                                                                    payload=EMPTY_HEADER))
bomb("streams-claimed", [4], "2^32 - 2 streams", lambda: archive(section([RAW8]), section([HEAD], (1 << 32) - 2), 1, payload=EMPTY_HEADER))
bomb("payload-claimed", [4], "a chunk with 4 GiB of payload", lambda: one_tensor([8], 8, 0, 2, RAW8, varint((1 << 32) - 1)))
bomb("header-claimed", [4, 6], "a header of 2^40 bytes", lambda: archive(section([ZERO8]), section([header(1 << 40, 1 << 20, b"\0" * 1000)]), 1000))
bomb("header-100MB", [4, 6], "100,000,001 bytes of header from a constant",
     lambda: archive(section([ZERO8]), section([header(100_000_001, 1 << 20, b"\0" * 96)]), 96))
bomb("header-packed-claimed", [4], "100,000,000 bytes of header in five", lambda: packed_header(digits(100_000_000), 1))
bomb("header-packed-100MB", [6], "100,000,001 spaces as one copy", lambda: packed_header(digits(100_000_001) + b" \x0f" + digits(100_000_001 - 15), 1))
bomb("header-packed-copies", [4], "100,000,000 spaces as one copy, and one more", lambda: packed_header(digits(100_000_000) + b" \x0f" + digits(100_000_000 - 14), 1))
bomb("section-claimed", [4, 6], "an index of 2^31 bytes, coded in 200",
     lambda: archive(section([RAW8]), bytes(200), 1, claims={2: (1, 200, 1 << 31)}))
bomb("sections-of-2^63", [4, 6], "sizes that wrap when they are added",
     lambda: archive(section([RAW8]), section([HEAD]), 1, claims={1: (0, 1 << 63, 1 << 63), 2: (0, 1 << 63, 1 << 63)}))
bomb("names-claimed", [4], "a name of 2^62 bytes", lambda: archive(section([RAW8]), section([HEAD, b"\2\0" + varint((1 << 63) + 1)]), 2, payload=EMPTY_HEADER))
bomb("refs-to-refs", [4], "each tensor refers to the one before: no chains", lambda: archive(
    section([RAW8, program(instruction(REF, 8)), ZERO8]),
    section([HEAD, tensor(b"a", [8], 8, 0, 2, b"\0"), tensor(b"b", [8], 8, 0, 1, b"\1\0\0"), tensor(b"c", [8], 8, 0, 1, b"\2\0\0")]), 4, payload=EMPTY_HEADER))
# Legal ones: small files that stand for much. What they need has to stay within what is asked for.
LEGAL = [
    ("terabyte", "zeros, a thousandth of a promille of their size", terabyte),
    ("deep", "63 maps over 2^20 words", lambda: one_tensor([1 << 23], 64, 1 << 20, 0, deep(MAP_ADD, 63), b"\0", sums=sum_of(
        EMPTY_HEADER, struct.pack("<Q", 63 * 3) * (1 << 20)))),
    ("repeat", "one word, 2^20 times", lambda: one_tensor([1 << 23], 64, 1 << 20, 0, program(instruction(CONST, 64, 0, 7), instruction(REPEAT, 64, 1, 1 << 20)),
                                                          b"\0", sums=sum_of(EMPTY_HEADER, struct.pack("<Q", 7) * (1 << 20)))),
    ("registers", "many registers of 8 MiB at a time", lambda: one_tensor([1 << 23], 64, 1 << 20, 0, wide_tree(), varint(31 << 17), bytes(31 << 17),
                                                              sums=sum_of(EMPTY_HEADER, bytes(8 << 20)))),
    ("tensors", "50,000 tensors of no bytes", lambda: archive(section([RAW8]), section(
        [HEAD] + [b"\2\0" + varint(15) + b"%07d" % i + b"\4" + b"\1\0" + b"\x08" + b"\0\0\0" for i in range(50_000)]), 1, payload=EMPTY_HEADER,
        sums=sum_of(EMPTY_HEADER))),
]


bomb("json-length", [3], "a header of 2^63 bytes", lambda: frame("{}", length=1 << 63), SYNTH_BOMBS)
bomb("json-deep", [3], "4,000,000 brackets", lambda: frame('{"t":' + "[" * 4_000_000), SYNTH_BOMBS)
bomb("json-deep-closed", [3], "a million pairs of brackets", lambda: frame('{"t":' + "[" * 1_000_000 + "]" * 1_000_000 + "}"), SYNTH_BOMBS)
bomb("json-long-key", [3, 6], "a name of 17,000,000 bytes", lambda: frame(
    '{"' + "k" * 17_000_000 + '":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"x"), SYNTH_BOMBS)
bomb("json-dims", [3, 6], "100,000 dimensions", lambda: frame('{"t":{"dtype":"U8","shape":[' + "1," * 99_999 + '1],"data_offsets":[0,1]}}', b"x"), SYNTH_BOMBS)
bomb("json-dims-overflow", [3, 6], "60,000 dimensions of 2^62", lambda: frame(
    '{"t":{"dtype":"U8","shape":[' + "4611686018427387904," * 59_999 + '1],"data_offsets":[0,1]}}', b"x"), SYNTH_BOMBS)
bomb("json-numbers", [3], "a number of a million digits", lambda: frame(
    '{"t":{"dtype":"U8","shape":[' + "9" * 1_000_000 + '],"data_offsets":[0,1]}}', b"x"), SYNTH_BOMBS)
bomb("json-offsets", [3], "a tensor of an exabyte", lambda: frame(
    '{"t":{"dtype":"U8","shape":[1152921504606846976],"data_offsets":[0,1152921504606846976]}}', b"x"), SYNTH_BOMBS)


def limit_time():
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS * (10 if SANITIZED else 1),) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def measured(*argv):
    """Exit code, stderr, largest resident size in bytes. A child of its own counts, since the largest of all children is what one can ask for."""
    with tempfile.TemporaryFile() as stderr:
        process = subprocess.Popen([os.fspath(a) for a in argv], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr, preexec_fn=limit_time)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        stderr.seek(0)
        return process.returncode, stderr.read().decode(errors="replace"), usage.ru_maxrss * 1024


def within(code, text, nbytes, codes, most, what):
    check(code in codes, f"{what}: exit {code}: {text[:300]}")
    check(code == 0 or len(text.strip().splitlines()) == 1, f"{what}: not one line on stderr: {text[:300]}")
    check(SANITIZED or nbytes <= most, f"{what}: {nbytes / MIB:.0f} MiB of memory, expected at most {most / MIB:.0f}")


def refused_archive(scratch, outcome, make):
    path = scratch / "bomb.brv"
    path.write_bytes(make())
    for command in (["test", path], ["list", path], ["show", path, "t"], ["cat", path, "t"], ["unpack", path, "-o", scratch / "o"], ["test", "--keep-going", path]):
        within(*measured(BREVIS, *command), outcome, MOST_NBYTES, command[0])
        check(os.listdir(scratch) == ["bomb.brv"], f"{command[0]} left {os.listdir(scratch)}")


def legal_archive(scratch, name, make):
    path = scratch / "bomb.brv"
    path.write_bytes(make())
    nbytes = path.stat().st_size
    within(*measured(BREVIS, "list", path), [0], MOST_NBYTES + 8 * nbytes, "list")
    for megabytes in (1, 32, 256):
        # What the command itself takes (its code, a window of output) comes on top.
        most = MOST_NBYTES + megabytes * MIB + 8 * nbytes
        within(*measured(BREVIS, "cat", "-T1", f"-M{megabytes}M", path, "t[0:1]" if name != "tensors" else "0000007"), [0, 6], most, f"cat -M {megabytes}M")
        if name != "terabyte":
            within(*measured(BREVIS, "test", "-T1", f"-M{megabytes}M", path), [0, 4, 6] if name == "registers" else [0, 6], most, f"test -M {megabytes}M")
    if name == "terabyte":
        within(*measured(BREVIS, "unpack", path, "-o", scratch / "o"), [5], MOST_NBYTES, "unpack")
        check(os.listdir(scratch) == ["bomb.brv"], f"unpack left {os.listdir(scratch)}")


def refused_checkpoint(scratch, outcome, make):
    path = scratch / "bomb.safetensors"
    path.write_bytes(make())
    within(*measured(SYNTH, path, "-o", scratch / "o"), outcome, MOST_NBYTES + 8 * path.stat().st_size, "brevis-synth")
    check(os.listdir(scratch) == [path.name], f"left {os.listdir(scratch)}")


def write_header(path, nbytes):
    """A checkpoint that is a header of nbytes. Nothing of it stays in this process, whose memory its children begin with."""
    path.write_bytes(frame('{"__metadata__":{"k":"' + "x" * (nbytes - 25) + '"}}'))


def large_header(scratch):
    """As large as a header may be, and one byte larger."""
    plain = scratch / "x.safetensors"
    write_header(plain, 100_000_000)
    succeed(SYNTH, "-q", plain, "-o", scratch / "x.brv")
    check((scratch / "x.brv").stat().st_size < 2 * MIB, "a header of one letter took more than 2 MiB")
    succeed(BREVIS, "unpack", scratch / "x.brv", "-o", scratch / "back")
    check(same(plain, scratch / "back"), "comes back different")
    within(*measured(BREVIS, "test", "-M32M", scratch / "x.brv"), [6], MOST_NBYTES + 32 * MIB, "test -M 32M")
    write_header(plain, 100_000_001)
    within(*measured(SYNTH, plain, "-o", scratch / "y"), [3, 6], MOST_NBYTES, "a header over the limit")


def many_tensors(scratch):
    plain = scratch / "x.safetensors"
    plain.write_bytes(checkpoint(*[(f"model.layers.{i // 1000}.experts.{i % 1000}.w", "BF16", [2], struct.pack("<HH", 0x3c00 + i % 77, i % 7))
                                   for i in range(100_000)]))
    succeed(SYNTH, "-q", plain, "-o", scratch / "x.brv")
    succeed(BREVIS, "unpack", scratch / "x.brv", "-o", scratch / "back")
    check(same(plain, scratch / "back"), "comes back different")
    row = succeed(BREVIS, "cat", scratch / "x.brv", "model.layers.77.experts.777.w").stdout
    check(row == struct.pack("<HH", 0x3c00 + 77777 % 77, 77777 % 7), "cat gives another tensor")


def main(prefixes):
    suite = Suite()
    cases = [(name, lambda s, o=outcome, m=make: refused_archive(s, o, m), what) for name, outcome, what, make in BOMBS]
    cases += [(f"legal-{name}", lambda s, n=name, m=make: legal_archive(s, n, m), what) for name, what, make in LEGAL]
    cases += [(name, lambda s, o=outcome, m=make: refused_checkpoint(s, o, m), what) for name, outcome, what, make in SYNTH_BOMBS]
    cases += [("large-header", large_header, "100,000,000 bytes"), ("many-tensors", many_tensors, "100,000")]
    for name, function, what in cases:
        if not prefixes or name.startswith(tuple(prefixes)):
            with suite.case(f"{name}: {what}") as scratch:
                function(scratch)
    return suite.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
