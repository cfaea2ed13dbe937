#!/usr/bin/env python3
"""reference_decoder.py: a second decoder of Brevis archives, written from docs/FORMAT.md alone, so that the document can be believed.

    reference_decoder.py [--no-checksums] [--count] ARCHIVE OUT.safetensors

It is meant to be read beside the document: a section of it is a part of this file, in the same order, and every sentence of the document
that says "damaged" is a `need` here. Nothing is fast: about a million words a minute. Standard library only; checksums come from the
package xxhash or, if that is missing, from libxxhash.so through ctypes, and --no-checksums does without both. --count prints how often each
op and each kind of table was met, for those who ask what a set of archives covers. Exit: 0 written, 1 damaged.
SPDX-License-Identifier: Apache-2.0
"""
import bisect
import collections
import ctypes
import ctypes.util
import math
import re
import struct
import sys


class Damaged(Exception):
    """The archive breaks a rule of the document."""


def need(condition, why):
    if not condition:
        raise Damaged(why)


# --- 1. Terms ----------------------------------------------------------------------------------------------------------------------------

class Cursor:
    """Bytes that are taken from the front and have to be used up exactly."""

    def __init__(self, data, what):
        self.data, self.at, self.what = data, 0, what

    def take(self, size):
        need(size <= len(self.data) - self.at, f"{self.what}: {size} bytes wanted, {len(self.data) - self.at} left")
        self.at += size
        return self.data[self.at - size:self.at]

    def uint(self, size):
        return int.from_bytes(self.take(size), "little")

    def varint(self):
        value = 0
        for i in range(10):
            byte = self.uint(1)
            value |= (byte & 127) << 7 * i
            if byte < 128:
                need(byte or not i, f"{self.what}: a varint that is longer than it has to be")
                need(value < 1 << 64, f"{self.what}: a varint of more than 64 bits")
                return value
        raise Damaged(f"{self.what}: a varint of more than 10 bytes")

    def signed(self):
        z = self.varint()
        return (z >> 1) ^ -(z & 1)

    def rest(self):
        return self.take(len(self.data) - self.at)

    def end(self):
        need(self.at == len(self.data), f"{self.what}: {len(self.data) - self.at} bytes left over")


class Bits:
    """A string of bits, read from the least significant bit of each byte; what fills up the last byte is 0."""

    def __init__(self, data, what):
        self.value, self.left, self.what = int.from_bytes(data, "little"), 8 * len(data), what

    def take(self, count):
        need(count <= self.left, f"{self.what}: bits missing")
        bits = self.value & ((1 << count) - 1)
        self.value >>= count
        self.left -= count
        return bits

    def end(self):
        need(self.left < 8 and self.value == 0, f"{self.what}: bits left over")


def packed_size(n, w):
    return (n * w + 7) // 8


def unpack(data, n, w, what):
    """n packed words of w bits. Eight of them fill w bytes, which keeps the integers small."""
    need(len(data) == packed_size(n, w), f"{what}: {len(data)} bytes for {n} words of {w} bits")
    if w == 0:
        return [0] * n
    words, mask = [], (1 << w) - 1
    for at in range(0, len(data), w):
        value = int.from_bytes(data[at:at + w], "little")
        count = min(8, n - len(words))
        words += [value >> w * i & mask for i in range(count)]
        need(value >> w * count == 0, f"{what}: bits left over")
    return words


def word_bytes(words, w):
    """The words as they lie in memory."""
    return struct.pack(f"<{len(words)}{'B' if w <= 8 else 'H' if w <= 16 else 'I' if w <= 32 else 'Q'}", *words)


def find_xxh3():
    """XXH3-64 as a function of bytes, or None."""
    try:
        import xxhash
        return xxhash.xxh3_64_intdigest
    except ImportError:
        pass
    try:
        function = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0").XXH3_64bits
    except (OSError, AttributeError):
        return None
    function.restype, function.argtypes = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_size_t]
    return lambda data: function(bytes(data), len(data))


# --- 2. Layout ---------------------------------------------------------------------------------------------------------------------------

MAGIC = bytes.fromhex("934252560D0A1A0A")
PRELUDE = 144
VERSION = 2  # the newest that there is
SECTIONS = ["CODE", "TABL", "INDX", "SUMS"]
PACKED, ENTRIES = 1, 2  # flags


def section_bytes(name, form, stored, size):
    need(form in (0, 1, 2), f"{name}: form {form}")
    if form == 0:
        need(len(stored) == size, f"{name}: stored plainly, but {len(stored)} bytes for {size}")
        return stored
    need(size > 0, f"{name}: coded, but empty")
    if form == 2:
        need(size <= 1 << 16, f"{name}: form 2, but {size} bytes")
        return predicted_bytes(Cursor(stored, name), size)
    cursor = Cursor(stored, name)
    table = HuffTable(cursor, name)
    need(table.last < 256, f"{name}: symbols of more than 8 bits")
    return bytes(table.decode(cursor.rest(), size, name))


# --- 2.1 Form 2 --------------------------------------------------------------------------------------------------------------------------

class Chance:
    def __init__(self):
        self.p, self.count = 32768, 0

    def learn(self, bit):
        t = 131072 // (2 * self.count + 3)
        self.p += (65535 - self.p) * t >> 16 if bit else -(self.p * t >> 16)
        self.p = min(max(self.p, 32), 65503)
        self.count = min(self.count + 1, 30)


class BitDecoder:
    def __init__(self, cursor):
        self.cursor, self.range = cursor, (1 << 32) - 1
        self.x = int.from_bytes(cursor.take(4), "big")

    def bit(self, chance):
        bound = (self.range >> 12) * (chance.p >> 4)
        bit = self.x < bound
        if bit:
            self.range = bound
        else:
            self.x, self.range = self.x - bound, self.range - bound
        while self.range < 1 << 24:
            self.range, self.x = self.range << 8, (self.x << 8 | self.cursor.uint(1)) & 0xffffffff
        return bit


def predicted_bytes(cursor, size):
    decoder, chances, last, out = BitDecoder(cursor), collections.defaultdict(Chance), {}, bytearray()
    match = None
    while len(out) < size:
        i, slot, hit = len(out), None, False
        if i >= 3:
            slot = (int.from_bytes(out[-3:], "big") * 2654435761 & 0xffffffff) >> 16
            if match is None:
                match, run = last.get(slot), 0
        if match is not None:
            chance = chances["hit", run, out[match]]
            hit = decoder.bit(chance)
            chance.learn(hit)
        if hit:
            out.append(out[match])
            match, run = match + 1, min(run + 1, 15)
        else:
            match, before, q = None, out[-1] if out else 0, 1
            while q < 256:
                of_all, after = chances["any", q], chances["after", before, q]
                bit = decoder.bit(after if after.count >= 2 else of_all)
                of_all.learn(bit)
                after.learn(bit)
                q = q << 1 | bit
            out.append(q & 255)
        if slot is not None:
            last[slot] = i
    cursor.end()
    return bytes(out)


# --- 3. CODE -----------------------------------------------------------------------------------------------------------------------------

CARRY, CLASSED = 1, 2

# code: format version, name, least and most arguments, greatest width, kind of payload, kind of table, flags allowed
OPS = {
    0x01: (1, "lit.raw", 0, 0, 64, "packed", None, 0),
    0x02: (1, "lit.pack", 0, 0, 64, "item", None, 0),
    0x03: (1, "lit.huff", 0, 0, 8, "item", "HUFF", 0),
    0x04: (1, "lit.rans", 0, 0, 16, "item", "RANS", CARRY | CLASSED),
    0x05: (1, "lit.wide", 0, 0, 16, "item", "WIDE", CARRY | CLASSED),
    0x06: (2, "lit.alias", 0, 0, 16, "item", "ALIAS", CARRY | CLASSED),
    0x10: (1, "const", 0, 0, 64, None, None, 0),
    0x11: (1, "concat", 2, 2, 64, None, None, 0),
    0x12: (1, "repeat", 1, 1, 64, None, None, 0),
    0x13: (1, "ref", 0, 0, 64, None, None, 0),
    0x20: (1, "map.xor", 1, 1, 64, None, None, 0),
    0x21: (1, "map.add", 1, 1, 64, None, None, 0),
    0x22: (1, "map.zigzag", 1, 1, 64, None, None, 0),
    0x23: (1, "map.gray", 1, 1, 64, None, None, 0),
    0x24: (1, "map.rot", 1, 1, 64, None, None, 0),
    0x30: (1, "scan.xor", 1, 1, 64, "first", None, 0),
    0x31: (1, "scan.add", 1, 1, 64, "first", None, 0),
    0x40: (1, "merge", 2, 16, 64, None, None, 0),
    0x41: (1, "weave", 2, 4, 64, None, None, 0),
    0x42: (1, "gate", 1, 1, 64, None, None, CLASSED),
    0x43: (2, "lookup", 2, 2, 64, None, None, 0),
    0x44: (2, "scatter", 2, 2, 64, None, None, 0),
    0x45: (2, "cut", 1, 1, 32, None, None, 0),
    0x46: (2, "deal", 1, 1, 32, None, None, 0),
}


class Instruction:
    def __init__(self, cursor, number):
        code, self.w, nargs, self.flags, self.aux, self.imm = struct.unpack("<BBBBIQ", cursor.take(16))
        need(code in OPS, f"unknown op {code:#x}")
        self.since, self.name, least, most, widest, self.payload, self.table, allowed = OPS[code]
        self.number, self.nargs, self.carrier = number, nargs, None
        need(1 <= self.w <= widest, f"{self.name}: width {self.w}")
        need(least <= nargs <= most, f"{self.name}: {nargs} arguments")
        need(self.flags & ~allowed == 0, f"{self.name}: flags {self.flags}")
        need(self.aux == 0 or self.flags & CARRY, f"{self.name}: aux {self.aux}")
        getattr(self, "check_" + self.name.replace(".", "_"), self.check_plain)()

    def check_plain(self):
        need(self.imm == 0, f"{self.name}: imm {self.imm}")

    def check_const(self):
        need(self.imm < 1 << self.w, f"{self.name}: imm of more than {self.w} bits")

    check_map_xor = check_map_add = check_scatter = check_const

    def check_map_rot(self):
        need(self.imm < self.w, f"map.rot by {self.imm}")

    def check_concat(self):
        pass                    # imm <= n is a matter of each chunk

    check_lookup = check_concat

    def check_repeat(self):
        need(self.imm >= 1, "repeat: no times")

    def check_ref(self):
        self.check_plain()
        need(self.w in (8, 16, 32, 64), f"ref: width {self.w}")

    def check_weave(self):
        self.runs = [self.imm >> 16 * i & 0xffff for i in range(4)]
        need(all(self.runs[:self.nargs]) and not any(self.runs[self.nargs:]), f"weave: runs {self.runs}")

    def check_deal(self):
        """The fields (bits, first bit, stride, words that a word has it of) of a block."""
        self.block, parts, self.fields = self.imm & 0xffff, [self.imm >> 16 * i & 0xffff for i in (1, 2, 3)], []
        while parts and parts[-1] == 0:
            parts.pop()
        need(self.block >= 1 and parts, "deal: no block or no fields")
        for part in parts:
            bits, stride = part & 15, (part >> 8) + 1
            need(bits and self.w % bits == 0, f"deal: a field of {bits} bits in words of {self.w}")
            self.fields.append((bits, part >> 4 & 15, stride, self.w // bits))
            need(self.block % (stride * (self.w // bits)) == 0, f"deal: blocks of {self.block} words")
        self.record = sum(self.block // k for _, _, _, k in self.fields)

    def check_gate(self):
        need(self.flags == CLASSED, "gate: not CLASSED")
        need(0 < self.imm < 256, f"gate: classes {self.imm:#x}")

    def check_merge(self):
        self.check_plain()
        need(self.w >= 2, "merge: width 1")


def carry_size(op):
    """Bytes of a lit.raw's packed words that its carrier holds."""
    return 0 if not op.carrier else 256 if op.carrier.name == "lit.alias" else 128


def record_words(op, n):
    """Words of the arguments of a weave, a cut or a deal."""
    if n == 0:
        return [0] * op.nargs
    if op.name == "weave":
        need(n % sum(op.runs) == 0, f"weave: {n} words in records of {op.runs}")
        return [n // sum(op.runs) * run for run in op.runs[:op.nargs]]
    if op.name == "deal":
        need(n % op.record == 0, f"deal: {n} words in records of {op.record}")
        return [n // op.record * op.block]
    return [-(-n // (op.args[0].w // op.w))]


class Program:
    """Instructions in post-order: arguments lie before what uses them."""

    def __init__(self, cursor):
        count = cursor.varint()
        need(1 <= count <= 64, f"{count} instructions")
        self.code = [Instruction(cursor, i) for i in range(count)]
        self.link()
        self.check_widths()
        self.check_classed()
        self.check_nested()
        self.check_carries()
        self.root = self.code[-1]

    def link(self):
        unused = []
        for op in self.code:
            need(op.nargs <= len(unused), f"{op.name}: arguments missing")
            cut = len(unused) - op.nargs
            op.args, unused = unused[cut:], unused[:cut] + [op]
        need(len(unused) == 1, f"{len(unused)} roots")

    def check_widths(self):
        for op in self.code:
            widths = [arg.w for arg in op.args]
            if op.name == "merge":
                need(sum(widths) == op.w, f"merge: {widths} make no {op.w}")
            elif op.name == "lookup":
                need(widths[0] == op.w and widths[1] <= 20, f"lookup: arguments of {widths} bits for {op.w}")
            elif op.name == "scatter":
                need(widths == [op.w, 1], f"scatter: arguments of {widths} bits for {op.w}")
            elif op.name == "cut":
                need(widths[0] > op.w and widths[0] % op.w == 0, f"cut: an argument of {widths} bits for {op.w}")
            elif op.name == "deal":
                bits = sorted(bit for b, first, _, _ in op.fields for bit in range(first, first + b))
                need(widths[0] <= 16 and bits == list(range(widths[0])), f"deal: fields of {bits} of {widths[0]} bits")
            else:
                need(all(w == op.w for w in widths), f"{op.name}: arguments of {widths} bits for {op.w}")

    def check_classed(self):
        self.code[-1].aligned = self.code[-1].placed = True     # word i of it belongs to word i of the chunk; words keep places in rows
        self.code[-1].parent = None
        for op in reversed(self.code):
            for i, arg in enumerate(op.args):
                steady = op.name.startswith("map.") or op.name == "merge" or (op.name in ("lookup", "scatter") and i == 1)
                arg.aligned, arg.parent, arg.slot = op.aligned and steady, op, i
                arg.placed = op.placed and (steady or op.name in ("weave", "cut", "deal"))
            placed = op.aligned if op.name == "gate" else op.placed
            need(placed or not op.flags & CLASSED, f"{op.name}: CLASSED, but its words have no places in rows")
            if op.flags & CLASSED and not op.aligned:
                self.code[-1].since = max(self.code[-1].since, 2)

    def check_nested(self):
        for op in self.code:
            while op.name == "deal" and op.parent:
                op = op.parent
                need(op.name != "deal", "deal: one below another")

    def placed_words(self, op, n):
        """Words of a placed instruction when the root has n."""
        path = []
        while op.parent:
            path.append(op)
            op = op.parent
        for op in reversed(path):
            n = record_words(op.parent, n)[op.slot] if op.parent.name in ("weave", "cut", "deal") else n
        return n

    def check_carries(self):
        for op in self.code:
            if op.flags & CARRY:
                need(op.aux < op.number, f"{op.name}: carries to register {op.aux}")
                target = self.code[op.aux]
                need(target.name == "lit.raw", f"{op.name}: carries to {target.name}")
                need(target.carrier is None, "two carries to one register")
                target.carrier = op


# --- 4. INDX and SUMS --------------------------------------------------------------------------------------------------------------------

DTYPE_NAMES = ["BOOL", "F4", "F6_E2M3", "F6_E3M2", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "I16", "U16",
               "F16", "BF16", "I32", "U32", "F32", "C64", "F64", "I64", "U64"]
DTYPE_BITS = [8, 4, 6, 6, 8, 8, 8, 8, 8, 8, 8, 16, 16, 16, 16, 32, 32, 32, 64, 64, 64, 64]
HEADER, CLASS, TENSOR = 0, 1, 2
MAX_CHUNK = 1 << 20


class Chunk:
    """start and n in words; tables and counts by instruction number; refs as {instruction number: (stream, first word)}; payload as a slice of the
    region."""


class Stream:
    def __init__(self, archive, cursor, number):
        self.archive, self.number, self.what = archive, number, f"stream {number}"
        self.kind = cursor.uint(1)
        need(self.kind <= TENSOR and (self.kind == HEADER) == (number == 0), f"{self.what}: kind {self.kind}")
        need(number == 0 or self.kind >= archive.streams[-1].kind, f"{self.what}: a class stream after a tensor")
        if self.kind == TENSOR:
            bits = 8 * self.read_tensor(cursor)
        else:
            self.n = cursor.varint()
        self.w = cursor.uint(1)
        if self.kind == TENSOR:
            need(self.w in (8, 16, 32, 64) and bits % self.w == 0, f"{self.what}: width {self.w} for {bits} bits")
            self.n = bits // self.w
        else:
            need(self.w == 8 if self.kind == HEADER else 1 <= self.w <= 8, f"{self.what}: width {self.w}")
        chunk = cursor.varint()
        need(chunk <= MAX_CHUNK and (chunk or self.n <= MAX_CHUNK), f"{self.what}: chunks of {chunk}")
        self.chunk = chunk or max(self.n, 1)
        self.read_geometry(cursor)
        count = cursor.varint()
        need(count <= 255 and (count == 0) == (self.n == 0), f"{self.what}: {count} variants for {self.n} words")
        self.variants = [self.read_variant(cursor) for _ in range(count)]
        self.chunks = [self.read_chunk(cursor, at) for at in range(0, self.n, self.chunk)]
        self.decoded, self.all_classes = {}, None
        if number == 0:
            archive.text = archive.header = self.read_all()
            if archive.flags & PACKED:
                archive.text = archive.header = unpack_text(archive.text)
            if archive.flags & ENTRIES:
                archive.marked_names = marked_names(archive.text)

    def read_tensor(self, cursor):
        """Name, type and shape; the size of the data in bytes."""
        archive = self.archive
        self.name = self.read_name(cursor) if not archive.flags & ENTRIES else next(archive.marked_names, None)
        need(self.name is not None, f"{self.what}: no mark for its name")
        need(len(self.name) <= 1 << 24, f"{self.what}: a name of {len(self.name)} bytes")
        try:
            self.name.decode()
        except UnicodeDecodeError:
            raise Damaged(f"{self.what}: its name is not UTF-8") from None
        need(self.name not in archive.names, f"{self.what}: name {self.name} twice")
        archive.names.add(self.name)
        self.dtype = cursor.uint(1)
        need(self.dtype < len(DTYPE_BITS) or self.dtype == 255, f"{self.what}: type {self.dtype}")
        if self.dtype == 255:
            size = cursor.varint()
            need(1 <= size <= 64, f"{self.what}: a type's name of {size} bytes")
            dtype_name = cursor.take(size)
            nbytes = cursor.varint()
        else:
            dtype_name = DTYPE_NAMES[self.dtype].encode()
        ndim = cursor.varint()
        need(ndim <= 65535, f"{self.what}: {ndim} dimensions")
        dims = [cursor.varint() for _ in range(ndim)]
        elements = math.prod(dims)
        if self.dtype != 255:
            bits = elements * DTYPE_BITS[self.dtype]
            need(bits % 8 == 0 and bits < 1 << 66, f"{self.what}: {bits} bits")
            nbytes = bits // 8
        shape = b",".join(b"%d" % d for d in dims)
        self.entry = b'":{"dtype":"%s","shape":[%s],"data_offsets":[%d,%d]}' % (dtype_name, shape, archive.total, archive.total + nbytes)
        archive.total += nbytes
        need(archive.total < 1 << 63, "more than 2^63 bytes")
        return nbytes

    def read_name(self, cursor):
        archive, skip, m = self.archive, cursor.signed(), cursor.varint()
        if m % 2 == 0:
            first = archive.name_end + skip
            archive.name_end = first + m // 2
            need(0 <= first and archive.name_end <= len(archive.header), f"{self.what}: its name lies outside of the header")
            return bytes(archive.header[first:archive.name_end])
        need(skip == 0, f"{self.what}: a distance to a name that is not in the header")
        return bytes(cursor.take(m // 2))

    def read_geometry(self, cursor):
        self.geometry, self.rows, self.columns, self.kr, self.kc = 0, None, None, 1, 1
        if self.kind == TENSOR:
            self.geometry = cursor.varint()
        if not self.geometry:
            return
        old = self.archive.version < 2
        need(not old or self.n % self.geometry == 0, f"{self.what}: rows of {self.geometry} words do not divide {self.n}")
        self.rows, self.kr = self.read_classes(cursor, self.n // self.geometry if old else None, range(2, 9))
        self.columns, self.kc = self.read_classes(cursor, self.geometry, (2, 4, 8, 16))

    def read_classes(self, cursor, count, allowed):
        """A class stream or None, and the number of its classes."""
        index = cursor.varint()
        if index == 0:
            return None, 1
        classes = cursor.uint(1)
        need(classes in allowed, f"{self.what}: {classes} classes")
        need(index <= len(self.archive.streams), f"{self.what}: class stream {index - 1}")
        stream = self.archive.streams[index - 1]
        need(stream.kind == CLASS and (count is None or stream.n == count), f"{self.what}: stream {index - 1} has no {count} classes")
        return stream, classes

    def read_variant(self, cursor):
        number = cursor.varint()
        need(number < len(self.archive.programs), f"{self.what}: program {number}")
        program = self.archive.programs[number]
        need(program.root.w == self.w, f"{self.what}: a program of {program.root.w} bits for {self.w}")
        for op in program.code:
            need(self.kind == TENSOR or op.name != "ref", f"{self.what}: a ref in a stream that is no tensor")
            need(self.kind != CLASS or not op.flags & CLASSED, f"{self.what}: classes of classes")
            if op.name == "gate":
                need(self.rows and op.imm < 1 << self.kr, f"{self.what}: gate of classes {op.imm:#x} of {self.kr}")
        return program

    def read_chunk(self, cursor, start):
        chunk, archive = Chunk(), self.archive
        chunk.start, chunk.n, chunk.number = start, min(self.chunk, self.n - start), archive.chunk_count
        archive.chunk_count += 1
        variant = cursor.uint(1) if len(self.variants) > 1 else 0
        need(variant < len(self.variants), f"{self.what}: variant {variant}")
        chunk.program = self.variants[variant]
        chunk.tables = {op.number: self.read_table(cursor, op) for op in chunk.program.code if op.table}
        chunk.refs = {op.number: (cursor.varint(), cursor.varint()) for op in chunk.program.code if op.name == "ref"}
        chunk.counts = {op.number: cursor.varint() for op in chunk.program.code if op.name in ("lookup", "scatter")}
        chunk.first = {op: self.place(chunk, op) for op in chunk.program.code if self.geometry and op.flags & CLASSED}
        size = cursor.varint()
        need(size < 1 << 32, f"{self.what}: a payload of {size} bytes")
        chunk.payload = slice(archive.payload_used, archive.payload_used + size)
        archive.payload_used += size
        return chunk

    def place(self, chunk, op):
        """The number of the first word of a CLASSED instruction among its words in all chunks."""
        number = chunk.start // self.chunk
        first = number and number * chunk.program.placed_words(op, self.chunk)
        end = first + chunk.program.placed_words(op, chunk.n)
        need(not self.rows or end <= self.rows.n * self.geometry, f"{self.what}: word {end - 1} lies in no row that has a class")
        return first

    def read_table(self, cursor, op):
        number = cursor.varint()
        need(number < len(self.archive.tables), f"{self.what}: table {number}")
        table = self.archive.tables[number]
        need(table.kind == op.table, f"{self.what}: {op.name} with a table {table.kind}")
        need(table.last < 1 << op.w if table.kind == "HUFF" else table.w == op.w, f"{self.what}: a table of another width")
        if table.kind != "HUFF":
            classed = op.flags & CLASSED
            need(table.kr in (1, self.kr if classed else 1), f"{self.what}: a table of {table.kr} row classes")
            need(table.kc in (1, self.kc if classed else 1), f"{self.what}: a table of {table.kc} column classes")
        return table

    def words(self, index):
        """The words of one chunk; its checksum compared."""
        if index not in self.decoded:
            chunk = self.chunks[index]
            words = Execution(self, chunk).run()
            xxh3 = self.archive.xxh3
            need(chunk.number < len(self.archive.sums), f"{self.what}, chunk {index}: no checksum")
            need(xxh3 is None or xxh3(word_bytes(words, self.w)) == self.archive.sums[chunk.number], f"{self.what}, chunk {index}: checksum")
            self.decoded[index] = words
        return self.decoded[index]

    def read_all(self):
        return word_bytes([word for i in range(len(self.chunks)) for word in self.words(i)], self.w)

    def classes(self, count):
        """All words of a class stream, each below count."""
        if self.all_classes is None:
            self.all_classes = [word for i in range(len(self.chunks)) for word in self.words(i)]
        need(all(word < count for word in self.all_classes), f"{self.what}: a class that is not below {count}")
        return self.all_classes

    def range(self, first, n):
        """n words from the first-th on, for a ref: of chunks without one."""
        words = []
        for i in range(first // self.chunk, -(-(first + n) // self.chunk)):
            need(not self.chunks[i].refs, f"{self.what}: a ref to a chunk with a ref")
            words += self.words(i)
        skip = first % self.chunk
        return words[skip:skip + n]


class Archive:
    def __init__(self, data, xxh3=None, on_chunk=lambda stream, chunk: None):
        self.xxh3, self.on_chunk = xxh3, on_chunk
        stored, self.payload = self.read_prelude(data)
        code, tabl, indx, sums = (Cursor(section, name) for name, section in zip(SECTIONS, stored))
        count = code.varint()
        need(count <= 65535, f"{count} programs")
        self.programs = [Program(code) for _ in range(count)]
        for program in self.programs:
            newest = max(instruction.since for instruction in program.code)
            need(newest <= self.version, f"an op of format version {newest} in an archive of version {self.version}")
        code.end()
        count = tabl.varint()
        need(count <= 65535, f"{count} tables")
        self.tables = [read_table(tabl) for _ in range(count)]
        tabl.end()
        need(len(sums.data) % 8 == 0, "SUMS: not a multiple of 8 bytes")
        self.sums = struct.unpack(f"<{len(sums.data) // 8}Q", sums.rest())
        self.read_index(indx)

    def read_prelude(self, data):
        need(len(data) >= PRELUDE and data[:8] == MAGIC, "no Brevis archive")
        version, flags, size, total, payload = struct.unpack_from("<HHIQQ", data, 8)
        need(1 <= version <= VERSION and size == PRELUDE, f"version {version}, prelude of {size} bytes")
        need(flags in ((0,) if version < 2 else (0, PACKED, PACKED | ENTRIES)), f"version {version}, flags {flags}")
        sections = [struct.unpack_from("<QQQ", data, 32 + 24 * i) for i in range(4)]
        end = PRELUDE + sum(stored for _, stored, _ in sections)
        need(end + payload == total == len(data), f"the archive says {total} bytes, its parts {end + payload}, the file {len(data)}")
        sums = struct.unpack_from("<QQ", data, 128)
        need(self.xxh3 is None or self.xxh3(data[:136]) == sums[1], "prelude: checksum")
        need(self.xxh3 is None or self.xxh3(data[PRELUDE:end]) == sums[0], "sections: checksum")
        self.version, self.flags = version, flags
        parts, at = [], PRELUDE
        for name, (form, stored, size) in zip(SECTIONS, sections):
            need(form < 2 or version >= 2, f"{name}: form {form} in an archive of version {version}")
            parts.append(section_bytes(name, form, data[at:at + stored], size))
            at += stored
        return parts, data[end:]

    def read_index(self, cursor):
        self.streams, self.names, self.header, self.name_end = [], set(), b"", 0
        self.total, self.chunk_count, self.payload_used = 0, 0, 0
        count = cursor.varint()
        need(count >= 1, "no streams")
        for i in range(count):
            self.streams.append(Stream(self, cursor, i))
        cursor.end()
        if self.flags & ENTRIES:
            self.header = expanded(self.text, [stream.entry for stream in self.streams if stream.kind == TENSOR])
        need(self.payload_used == len(self.payload), f"chunks use {self.payload_used} bytes of payload, there are {len(self.payload)}")
        need(self.chunk_count == len(self.sums), f"{self.chunk_count} chunks, {len(self.sums)} checksums")
        need(self.total + len(self.header) < 1 << 63, "more than 2^63 bytes")

    def write(self, file):
        file.write(struct.pack("<Q", len(self.header)) + self.header)
        for stream in self.streams:
            if stream.kind == TENSOR:
                file.write(stream.read_all())


# --- 4.1 The packed header ---------------------------------------------------------------------------------------------------------------

MAX_HEADER = 100_000_000


def digits(cursor):
    value = 0
    for i in range(5):
        byte = cursor.uint(1)
        need(byte < 128, f"{cursor.what}: a digit of {byte}")
        value |= (byte & 63) << 6 * i
        if byte < 64:
            return value
    raise Damaged(f"{cursor.what}: a number of more than 5 digits")


def unpack_text(packed):
    cursor, text, distance = Cursor(packed, "the packed header"), bytearray(), 1
    size = digits(cursor)
    need(size <= MAX_HEADER, f"a header of {size} bytes")
    while len(text) < size:
        command = cursor.uint(1)
        if command == 0:
            text.append(cursor.uint(1))
        elif command in (1, 2) or command >= 32:
            text.append(command)
        else:
            length = command - 1 if command < 16 else command - 13
            if command in (15, 31):
                length += digits(cursor)
            if command >= 16:
                distance = digits(cursor) + 1
            need(distance <= len(text) and length <= size - len(text), "the packed header: a copy of what is not there")
            for _ in range(length):
                text.append(text[-distance])
    cursor.end()
    return bytes(text)


def split_at_marks(text):
    """Text, mark, text, mark, ..., text."""
    return re.split(b"([\x01\x02])", text)


def marked_names(text):
    parts = split_at_marks(text)
    return (name for mark, name in zip(parts[1::2], parts[2::2]) if mark == b"\x01")


def expanded(text, entries):
    parts, entries, is_open = split_at_marks(text), iter(entries), False
    header = bytearray(parts[0])
    for mark, part in zip(parts[1::2], parts[2::2]):
        if is_open:
            entry = next(entries, None)
            need(entry is not None, "the header: more names than there are tensors")
            header += entry
        need(is_open or mark == b"\x01", "the header: a mark that ends no name")
        is_open = mark == b"\x01"
        if is_open:
            header += b'"' if header[-1:] == b"{" else b',"'
        header += part
    need(not is_open and next(entries, None) is None, "the header: fewer names than there are tensors, or one that does not end")
    need(len(header) <= MAX_HEADER, f"a header of {len(header)} bytes")
    return bytes(header)


# --- 5. Programs -------------------------------------------------------------------------------------------------------------------------

class Execution:
    """One chunk of a stream: sizes from the root down, payload to each instruction in order, words from the leaves up."""

    def __init__(self, stream, chunk):
        self.stream, self.chunk, self.code = stream, chunk, chunk.program.code
        self.size, self.taken, self.carried, self.results = {}, {}, {}, {}
        stream.archive.on_chunk(stream, chunk)

    def run(self):
        self.size[self.chunk.program.root] = self.chunk.n
        for op in reversed(self.code):
            for arg, n in zip(op.args, self.argument_words(op, self.size[op])):
                self.size[arg] = n
        payload = Cursor(self.stream.archive.payload[self.chunk.payload], self.stream.what)
        for op in self.code:
            if op.name == "ref":
                self.check_ref(op, self.size[op])
            self.taken[op] = self.take(op, payload)
        payload.end()
        for op in sorted(self.code, key=lambda op: not op.flags & CARRY):   # those that carry come before what they carry to
            self.results[op] = getattr(self, "run_" + op.name.replace(".", "_"))(op, self.size[op]) if self.size[op] else []
            assert len(self.results[op]) == self.size[op]
        return self.results[self.chunk.program.root]

    def argument_words(self, op, n):
        if op.name in ("lookup", "scatter"):
            count = self.chunk.counts[op.number]
            need(count <= n, f"{op.name}: {count} words to choose from for {n}")
            if op.name == "lookup" and n:
                need(count >= 1 and count % self.blocks(op, n) == 0, f"lookup: {count} words for {self.blocks(op, n)} dictionaries")
            return [count, n]
        if n == 0:
            return [0] * op.nargs
        if op.name == "concat":
            need(op.imm <= n, f"concat: {op.imm} of {n} words")
            return [op.imm, n - op.imm]
        if op.name == "repeat":
            need(n % op.imm == 0, f"repeat: {n} words, {op.imm} times")
            return [n // op.imm]
        if op.name.startswith("scan."):
            return [n - 1]
        if op.name in ("weave", "cut", "deal"):
            return record_words(op, n)
        if op.name == "gate":
            return [sum(not self.gated(op, i) for i in range(n))]
        return [n] * op.nargs

    # 5.1

    def take(self, op, payload):
        n = self.size[op]
        if op.carrier:
            need(packed_size(n, op.w) >= carry_size(op) and self.size[op.carrier], "a carry to too few bytes, or from no word")
        if n == 0 or op.payload is None:
            return b""
        if op.payload == "packed":
            return payload.take(packed_size(n, op.w) - carry_size(op))
        if op.payload == "first":
            return payload.take(packed_size(1, op.w))
        return payload.take(payload.uint(4))

    # 5.2

    def argument(self, op):
        return self.results[op.args[0]]

    def run_const(self, op, n):
        return [op.imm] * n

    def run_concat(self, op, n):
        return self.results[op.args[0]] + self.results[op.args[1]]

    def run_repeat(self, op, n):
        return self.argument(op) * op.imm

    def check_ref(self, op, n):
        """The stream and the first word. To be right even if it is for no words."""
        number, first = self.chunk.refs[op.number]
        need(number < self.stream.number, f"ref: stream {number} is not before {self.stream.number}")
        other = self.stream.archive.streams[number]
        need(other.kind == TENSOR and other.w == op.w, f"ref: stream {number} is no tensor of {op.w} bits")
        need(first + n <= other.n, f"ref: words {first}..{first + n} of {other.n}")
        return other, first

    def run_ref(self, op, n):
        other, first = self.check_ref(op, n)
        return other.range(first, n)

    def run_map_xor(self, op, n):
        return [v ^ op.imm for v in self.argument(op)]

    def run_map_add(self, op, n):
        return [(v + op.imm) % (1 << op.w) for v in self.argument(op)]

    def run_map_zigzag(self, op, n):
        return [((v >> 1) ^ -(v & 1)) % (1 << op.w) for v in self.argument(op)]

    def run_map_gray(self, op, n):
        def number(v):
            g = v
            for shift in range(1, op.w):
                g ^= v >> shift
            return g
        return [number(v) for v in self.argument(op)]

    def run_map_rot(self, op, n):
        return [(v >> op.imm | v << op.w - op.imm) % (1 << op.w) for v in self.argument(op)]

    def run_scan_xor(self, op, n):
        words = unpack(self.taken[op], 1, op.w, "scan")
        for v in self.argument(op):
            words.append(words[-1] ^ v)
        return words

    def run_scan_add(self, op, n):
        words = unpack(self.taken[op], 1, op.w, "scan")
        for v in self.argument(op):
            words.append((words[-1] + v) % (1 << op.w))
        return words

    def run_merge(self, op, n):
        words, shift = [0] * n, 0
        for arg in op.args:
            words = [word | v << shift for word, v in zip(words, self.results[arg])]
            shift += arg.w
        return words

    def run_weave(self, op, n):
        sources = [(iter(self.results[arg]), run) for arg, run in zip(op.args, op.runs)]
        return [next(source) for _ in range(n // sum(op.runs)) for source, run in sources for _ in range(run)]

    def gated(self, op, i):
        row = (self.chunk.start + i) // self.stream.geometry
        return op.imm >> self.row_classes()[row] & 1

    def run_gate(self, op, n):
        source = iter(self.argument(op))
        return [0 if self.gated(op, i) else next(source) for i in range(n)]

    def blocks(self, op, n):
        return -(-n // op.imm) if op.imm else 1

    def run_lookup(self, op, n):
        dictionary, index = (self.results[arg] for arg in op.args)
        entries = len(dictionary) // self.blocks(op, n)
        need(all(v < entries for v in index), f"lookup: an index that is not below {entries}")
        return [dictionary[(i // op.imm if op.imm else 0) * entries + v] for i, v in enumerate(index)]

    def run_scatter(self, op, n):
        words, mask = (self.results[arg] for arg in op.args)
        need(sum(mask) == len(words), f"scatter: {len(words)} words for {sum(mask)} places")
        source = iter(words)
        return [next(source) if bit else op.imm for bit in mask]

    def run_deal(self, op, n):
        words, source = [], self.argument(op)
        for at in range(0, len(source), op.block):
            for bits, first, stride, k in op.fields:
                for j in range(op.block // k):
                    e = at + j // stride * stride * k + j % stride
                    words.append(sum((source[e + t * stride] >> first & (1 << bits) - 1) << t * bits for t in range(k)))
        return words

    def run_cut(self, op, n):
        fields = op.args[0].w // op.w
        words = [v >> op.w * i & (1 << op.w) - 1 for v in self.argument(op) for i in range(fields)]
        need(not any(words[n:]), "cut: a field behind the last word is not 0")
        return words[:n]

    # 5.3

    def run_lit_raw(self, op, n):
        return unpack(self.taken[op] + (self.carried[op.carrier] if op.carrier else b""), n, op.w, op.name)

    def run_lit_pack(self, op, n):
        item = Cursor(self.taken[op], op.name)
        b = item.uint(1)
        need(b <= op.w, f"lit.pack: {b} bits of {op.w}")
        base = unpack(item.take(packed_size(1, op.w)), 1, op.w, op.name)[0]
        return [(base + v) % (1 << op.w) for v in unpack(item.rest(), n, b, op.name)]

    def run_lit_huff(self, op, n):
        return self.chunk.tables[op.number].decode(self.taken[op], n, op.name)

    def run_lit_rans(self, op, n):
        table, item = self.chunk.tables[op.number], Cursor(self.taken[op], op.name)
        escapes, literals, patches = item.varint(), item.varint(), item.varint()
        nibbles = unpack(item.take((escapes + 1) // 2), escapes, 4, op.name)
        literal = item.take(literals)
        patch = [(item.uint(4), item.uint(2)) for _ in range(patches)]
        low, high, bytes_ = item.take(128), item.take(128), Cursor(item.rest(), op.name)
        states = [lo | hi << 8 for lo, hi in zip(low, high)]
        used, literals_used, words = 0, 0, []
        for i, pair in enumerate(self.pairs(op, table, n)):
            j, states[i % 128] = table.step(states[i % 128], pair, bytes_)
            if j != table.escape:
                byte = table.map[j]
            else:
                need(used < escapes, "lit.rans: more escapes than it says")
                nibble = nibbles[used]
                used += 1
                if nibble < 15:
                    byte = table.tail[nibble]
                else:
                    need(literals_used < literals, "lit.rans: more literals than it says")
                    byte = literal[literals_used]
                    literals_used += 1
            words.append((table.base + byte) % (1 << op.w))
        need(used == escapes and literals_used == literals, "lit.rans: escapes or literals left over")
        bytes_.end()
        last = -1
        for position, word in patch:
            need(last < position < n and word < 1 << op.w, f"lit.rans: patch {word} at {position} of {n}")
            words[position], last = word, position
        self.finish(op, states, 256, 1)
        return words

    def run_lit_wide(self, op, n):
        table, item, size = self.chunk.tables[op.number], Cursor(self.taken[op], op.name), packed_size(1, op.w)
        literals = Cursor(item.take(item.varint() * size), op.name)
        states = [item.uint(4) for _ in range(64)]
        rest, words = Cursor(item.rest(), op.name), []
        for i, pair in enumerate(self.pairs(op, table, n)):
            x = states[i % 64]
            slot, cum = x & 4095, table.cum[pair]
            j = bisect.bisect_right(cum, slot) - 1          # the last of equal ones: symbols of frequency 0 end where they begin
            x = (cum[j + 1] - cum[j]) * (x >> 12) + slot - cum[j]
            x %= 1 << 32
            if x < 65536:
                x = x << 16 | rest.uint(2)
            states[i % 64] = x
            word = literals.uint(size) if j == table.escape else table.value[j]
            need(word < 1 << op.w, f"lit.wide: literal {word}")
            words.append(word)
        literals.end()
        rest.end()
        self.finish(op, states, 65536, 2)
        return words

    def run_lit_alias(self, op, n):
        table, item, size = self.chunk.tables[op.number], Cursor(self.taken[op], op.name), packed_size(1, op.w)
        literals = Cursor(item.take(item.varint() * size), op.name)
        flags, low, high = unpack(item.take(16), 128, 1, op.name), unpack(item.take(192), 128, 12, op.name), item.take(128)
        states = [x | h << 12 | (item.uint(1) if flag else 0) << 20 for x, h, flag in zip(low, high, flags)]
        rest, words = Cursor(item.rest(), op.name), []
        for i, pair in enumerate(self.pairs(op, table, n)):
            owner, rank, freq = table.pairs[pair]
            x = states[i % 128]
            j = owner[x & 4095]
            x = freq[j] * (x >> 12) + rank[x & 4095]
            if x < 4096:
                x = x << 16 | rest.uint(2)
            states[i % 128] = x
            word = literals.uint(size) if j == table.escape else table.value[j]
            need(word < 1 << op.w, f"lit.alias: literal {word}")
            words.append(word)
        literals.end()
        rest.end()
        self.finish(op, states, 4096, 2)
        return words

    # 5.4

    def finish(self, op, states, base, size):
        """Final states, and what they carry."""
        limit = 1 << 8 * size if op.flags & CARRY else 1
        need(all(base <= x < base + limit for x in states), f"{op.name}: a final state")
        self.carried[op] = b"".join((x - base).to_bytes(size, "little") for x in states)

    # 7

    def row_classes(self):
        return self.stream.rows.classes(self.stream.kr)

    def pairs(self, op, table, n):
        """For each word the number of its class pair in the table."""
        stream, start = self.stream, self.chunk.first.get(op, 0)
        rows = self.row_classes() if table.kr > 1 else None
        columns = stream.columns.classes(stream.kc) if table.kc > 1 else None
        for i in range(n):
            r = rows[(start + i // 128 * 128) // stream.geometry] if rows else 0
            c = columns[(start + i) % stream.geometry] if columns else 0
            yield r * table.kc + c


# --- 6. TABL -----------------------------------------------------------------------------------------------------------------------------

class HuffTable:
    kind = "HUFF"

    def __init__(self, cursor, what):
        first, self.last = cursor.uint(1), cursor.uint(1)
        need(first <= self.last, f"{what}: symbols {first}..{self.last}")
        count = self.last - first + 1
        lengths = unpack(cursor.take(packed_size(count, 4)), count, 4, what)
        coded = sorted((length, first + i) for i, length in enumerate(lengths) if length)
        need(all(length <= 12 for length in lengths), f"{what}: a code of more than 12 bits")
        need(len(coded) >= 2 and sum(4096 >> length for length, _ in coded) == 4096, f"{what}: codes are not complete")
        self.symbol_of, code, before = {}, 0, coded[0][0]
        for length, symbol in coded:
            code <<= length - before
            self.symbol_of[length, code] = symbol
            code, before = code + 1, length

    def decode(self, item, n, what):
        """5.3, lit.huff."""
        item, count = Cursor(item, what), 1 if n < 256 else 8
        q = -(-n // count)
        sizes = [item.varint() for _ in range(count - 1)]
        segments = [item.take(size) for size in sizes] + [item.rest()]
        words = []
        for s, segment in enumerate(segments):
            words += self.segment(segment, max(min(q, n - s * q), 0), what)
        return words

    def segment(self, data, n, what):
        words, length, code = [], 0, 0
        bits = (byte >> i & 1 for byte in data for i in range(8))
        used = 0
        while len(words) < n:
            bit = next(bits, None)
            need(bit is not None, f"{what}: bits missing")
            used, length, code = used + 1, length + 1, code << 1 | bit
            if (length, code) in self.symbol_of:
                words.append(self.symbol_of[length, code])
                length = code = 0
        need(len(data) == packed_size(used, 1) and not any(bits), f"{what}: bits left over")
        return words


class RansTable:
    kind = "RANS"

    def __init__(self, cursor, what):
        log, self.w, self.kr, self.kc, self.base, escape, zero = struct.unpack("<BBBBHBB", cursor.take(8))
        need(log in (4, 5, 6), f"{what}: 2^{log} buckets")
        self.nb = nb = 1 << log
        need(1 <= self.w <= 16 and self.base < 1 << self.w, f"{what}: width {self.w}, base {self.base}")
        need(1 <= self.kr <= 8 and self.kc in (1, 2, 4), f"{what}: {self.kr} x {self.kc} classes")
        need((escape < nb or escape == 255) and zero == 0, f"{what}: escape {escape}, reserved {zero}")
        self.escape = escape if escape < nb else None
        self.map, self.tail = cursor.take(nb), cursor.take(15)
        self.span = 256 // nb
        self.pairs = [self.read_pair(cursor.take(nb), what) for _ in range(self.kr * self.kc)]

    def read_pair(self, buckets, what):
        threshold = [byte % self.span for byte in buckets]
        alias = [byte // self.span for byte in buckets]
        freq, before = list(threshold), []
        for b in range(self.nb):
            before.append(freq[alias[b]])
            freq[alias[b]] += self.span - threshold[b]
        need(max(freq) <= 255, f"{what}: a symbol in all positions")
        return threshold, alias, freq, before

    def step(self, x, pair, renormalisation):
        """One symbol's index and the next state."""
        threshold, alias, freq, before = self.pairs[pair]
        lo, hi = x & 255, x >> 8
        b, t = divmod(lo, self.span)
        j, r = (b, t) if t < threshold[b] else (alias[b], t - threshold[b] + before[b])
        x = freq[j] * hi + r
        return j, x << 8 | renormalisation.uint(1) if x < 256 else x


def read_values(cursor, count, w, what):
    value, next_value = [], 0
    for _ in range(count):
        value.append(next_value + cursor.varint())
        next_value = value[-1] + 1
    need(value[-1] < 1 << w, f"{what}: symbol {value[-1]}")
    return value


class WideTable:
    kind = "WIDE"

    def __init__(self, cursor, what):
        self.w, self.kr, self.kc, escape, count = struct.unpack("<BBBBB", cursor.take(5))
        count += 1
        need(1 <= self.w <= 16 and 1 <= self.kr <= 8 and self.kc in (1, 2, 4, 8, 16), f"{what}: width {self.w}, {self.kr} x {self.kc} classes")
        need(escape <= 1 and count >= 2, f"{what}: {count} symbols, escape {escape}")
        self.escape = count - 1 if escape else None
        self.value = read_values(cursor, count - escape, self.w, what)
        bits, self.cum = Bits(cursor.rest(), what), []
        for _ in range(self.kr * self.kc):
            cum = [0]
            for _ in range(count):
                freq = self.read_freq(bits, what)
                need(freq <= 4095, f"{what}: frequency {freq}")
                cum.append(cum[-1] + freq)
            need(cum[-1] == 4096, f"{what}: frequencies add up to {cum[-1]}")
            self.cum.append(cum)
        bits.end()

    @staticmethod
    def read_freq(bits, what):
        k = bits.take(4)
        need(k <= 12, f"{what}: a frequency of {k} bits")
        return (1 << k - 1) + bits.take(k - 1) if k else 0


class AliasTable:
    kind = "ALIAS"

    def __init__(self, cursor, what):
        log, self.w, self.kr, self.kc, escape, count = struct.unpack("<BBBBBB", cursor.take(6))
        count += 1
        need(4 <= log <= 8, f"{what}: 2^{log} buckets")
        self.nb = nb = 1 << log
        need(1 <= self.w <= 16 and 1 <= self.kr <= 8 and self.kc in (1, 2, 4), f"{what}: width {self.w}, {self.kr} x {self.kc} classes")
        need(nb * self.kc <= 256, f"{what}: {nb} buckets for each of {self.kc} classes")
        need(escape <= 1 and 2 <= count <= nb, f"{what}: {count} symbols, escape {escape}")
        self.escape = count - 1 if escape else None
        self.value = read_values(cursor, count - escape, self.w, what)
        bits = Bits(cursor.rest(), what)
        self.pairs = [self.read_pair(bits, count, what) for _ in range(self.kr * self.kc)]
        bits.end()

    def read_pair(self, bits, count, what):
        """Each position's symbol and rank; each symbol's frequency."""
        freq, k = [], 0
        for _ in range(count):
            step = 0
            while not bits.take(1):
                step += 1
            k += -step if step and bits.take(1) else step
            need(0 <= k <= 12, f"{what}: a frequency of {k} bits")
            freq.append((1 << k - 1) + bits.take(k - 1) if k else 0)
        need(max(freq) <= 4095 and sum(freq) == 4096, f"{what}: frequencies add up to {sum(freq)}")
        nb, size = self.nb, 4096 // self.nb
        symbol = sorted(range(nb), key=lambda j: -freq[j] if j < count else 1)
        left = [freq[j] if j < count else 0 for j in symbol]
        threshold, alias, unfilled = [size] * nb, list(range(nb)), set(range(nb))
        while any(left[b] < size for b in unfilled):
            b = min(b for b in unfilled if left[b] < size)
            unfilled.remove(b)
            alias[b] = max(unfilled, key=lambda other: (left[other], -other))
            threshold[b] = left[b]
            left[alias[b]] -= size - left[b]
        owner, rank, used = [0] * 4096, [0] * 4096, [0] * nb
        for b in range(nb):
            for t in range(threshold[b]):
                owner[b * size + t], rank[b * size + t] = symbol[b], t
            used[b] = threshold[b]
        for b in range(nb):
            for t in range(threshold[b], size):
                owner[b * size + t], rank[b * size + t] = symbol[alias[b]], used[alias[b]]
                used[alias[b]] += 1
        return owner, rank, freq


def read_table(cursor):
    kind = cursor.uint(1)
    need(1 <= kind <= 4, f"table of kind {kind}")
    body = Cursor(cursor.take(cursor.varint()), "table")
    table = (HuffTable, RansTable, WideTable, AliasTable)[kind - 1](body, body.what)
    body.end()
    return table


# -----------------------------------------------------------------------------------------------------------------------------------------

def features(stream, chunk):
    """What a chunk exercises, as words to count."""
    for op in chunk.program.code:
        yield op.name + "+carry" * (op.flags & CARRY) + "+classed" * (op.flags & CLASSED > 0 and op.name != "gate")
    for table in chunk.tables.values():
        yield table.kind if table.kind == "HUFF" else f"{table.kind} {table.kr}x{table.kc}" + " escape" * (table.escape is not None) + (
            f" nb={table.nb}" if table.kind in ("RANS", "ALIAS") else "")


def decode(data, checksums=True, count=None):
    """The archive read; count, a Counter, learns what its chunks used."""
    xxh3 = find_xxh3() if checksums else None
    if checksums and not xxh3:
        sys.exit("reference_decoder.py: neither the package xxhash nor libxxhash.so was found; --no-checksums does without")
    if count is None:
        return Archive(data, xxh3)
    return Archive(data, xxh3, lambda stream, chunk: count.update(features(stream, chunk)))


def main(argv):
    options, paths = {a for a in argv if a.startswith("--")}, [a for a in argv if not a.startswith("--")]
    if len(paths) != 2 or options - {"--no-checksums", "--count"}:
        sys.exit(__doc__)
    count = collections.Counter()
    try:
        with open(paths[0], "rb") as file:
            archive = decode(file.read(), "--no-checksums" not in options, count)
        with open(paths[1], "wb") as file:
            archive.write(file)
    except Damaged as why:
        print(f"{paths[0]}: damaged: {why}", file=sys.stderr)
        return 1
    if "--count" in options:
        for name, times in sorted(count.items()):
            print(f"{times:8} {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
