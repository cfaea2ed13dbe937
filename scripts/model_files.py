"""model_files.py: readers of the formats that published weights come in, and a writer of .safetensors.

Used by fetch-models. Nothing of what is read is ever run: pickles are decoded by an unpickler that knows tensors and dictionaries only.
SPDX-License-Identifier: Apache-2.0
"""
import io
import json
import pickle
import struct
import zipfile
from typing import NamedTuple

# Narrow types first; the reference library's writer puts wide ones first, then sorts by name.
NBYTES = dict(BOOL=1, U8=1, I8=1, F8_E5M2=1, F8_E4M3=1, I16=2, U16=2, F16=2, BF16=2, I32=4, U32=4, F32=4, F64=8, I64=8, U64=8)
WIDTH_ORDER = {name: i for i, name in enumerate(NBYTES)}


class Tensor(NamedTuple):
    dtype: str
    shape: tuple
    data: bytes             # little-endian, row-major


def tensor(dtype, shape, data):
    count = 1
    for n in shape:
        count *= int(n)
    if count * NBYTES[dtype] != len(data):
        raise ValueError(f"{dtype} {list(shape)} of {len(data)} bytes")
    return Tensor(dtype, tuple(int(n) for n in shape), bytes(data))


# ---- safetensors

def read_safetensors(blob):
    """(tensors by name, metadata or None)"""
    start = 8 + int.from_bytes(blob[:8], "little")
    header = json.loads(blob[8:start])
    metadata = header.pop("__metadata__", None)
    return {name: tensor(entry["dtype"], entry["shape"], blob[start + entry["data_offsets"][0]:start + entry["data_offsets"][1]])
            for name, entry in header.items()}, metadata


def safetensors_parts(tensors, metadata=None, order=None, align=8, ascii_only=False):
    """The file as pieces to be written one after the other."""
    order = order or sorted(tensors, key=lambda name: (-WIDTH_ORDER[tensors[name].dtype], name))
    header = {} if metadata is None else {"__metadata__": metadata}
    end = 0
    for name in order:
        begin, end = end, end + len(tensors[name].data)
        header[name] = {"dtype": tensors[name].dtype, "shape": tensors[name].shape, "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=ascii_only).encode()
    text += b" " * (-len(text) % align)
    yield len(text).to_bytes(8, "little") + text
    for name in order:
        yield tensors[name].data


# ---- PyTorch: a zip archive of one pickle and the storages, or, older, pickles and storages in a row

STORAGES = {"Float": "F32", "Double": "F64", "Half": "F16", "BFloat16": "BF16", "Long": "I64", "Int": "I32", "Short": "I16", "Char": "I8",
            "Byte": "U8", "Bool": "BOOL"}


class View(NamedTuple):
    """A tensor of a pickle: part of a storage that may come later in the file."""
    dtype: str
    key: str
    offset: int
    shape: tuple
    stride: tuple


class TensorUnpickler(pickle.Unpickler):
    def __init__(self, file):
        super().__init__(file)
        self.storages = {}      # key -> (dtype, bytes)

    def find_class(self, module, name):
        known = {("torch._utils", "_rebuild_tensor_v2"): lambda storage, *layout: View(*storage, *layout[:3]),
                 ("torch._utils", "_rebuild_parameter"): lambda data, *_: data,
                 ("collections", "OrderedDict"): type("OrderedDict", (dict,), {})}
        if module == "torch" and name.endswith("Storage"):
            return STORAGES[name[:-len("Storage")]]
        if (module, name) in known:
            return known[module, name]
        raise pickle.UnpicklingError(f"{module}.{name} is not of a checkpoint")

    def persistent_load(self, pid):
        _, dtype, key, _, count = pid[:5]
        self.storages[key] = dtype, count * NBYTES[dtype]
        return dtype, key


def views_in(tree, prefix=""):
    for key, value in tree.items():
        if isinstance(value, View):
            yield f"{prefix}{key}", value
        elif isinstance(value, dict):
            yield from views_in(value, f"{prefix}{key}.")


def resolve(tree, storages):
    """Tensors of the views whose storage is there."""
    import numpy as np
    views = dict(views_in(tree))
    prefix = next((p for p in ("state_dict.", "model_state_dict.") if all(name.startswith(p) for name in views)), "")
    out = {}
    for name, view in views.items():
        if view.key in storages:
            size = NBYTES[view.dtype]
            words = np.ndarray(view.shape, f"<u{size}", storages[view.key], view.offset * size, [s * size for s in view.stride])
            out[name[len(prefix):]] = tensor(view.dtype, view.shape, words.tobytes())
    return out


def read_torch(blob):
    file = io.BytesIO(blob)
    if blob.startswith(b"PK"):
        archive = zipfile.ZipFile(file)
        root = next(name for name in archive.namelist() if name.endswith("/data.pkl"))[:-len("data.pkl")]
        unpickler = TensorUnpickler(io.BytesIO(archive.read(root + "data.pkl")))
        tree = unpickler.load()
        return resolve(tree, {key: archive.read(f"{root}data/{key}") for key in unpickler.storages})
    for _ in range(3):          # a magic number, a version, facts of the machine that wrote it
        TensorUnpickler(file).load()
    unpickler = TensorUnpickler(file)
    tree = unpickler.load()
    storages = {}
    for key in TensorUnpickler(file).load():
        file.read(8)            # number of elements
        storages[key] = file.read(unpickler.storages[key][1])
    return resolve(tree, storages)


def read_torch_part(blob):
    """The tensors that the first part of a split zip archive holds whole; its directory is in the last part."""
    tree, unpickler, storages, at = None, None, {}, 0
    while 0 <= at <= len(blob) - 30 and blob[at:at + 4] == b"PK\3\4":
        name_size, extra_size = struct.unpack_from("<HH", blob, at + 26)
        body = at + 30 + name_size + extra_size
        key = blob[at + 30:at + 30 + name_size].decode().rsplit("/", 1)[-1]
        end = body
        if key == "data.pkl":
            unpickler = TensorUnpickler(io.BytesIO(blob[body:]))
            tree = unpickler.load()
        elif unpickler and key in unpickler.storages:
            end = body + unpickler.storages[key][1]
            if end > len(blob):
                break
            storages[key] = blob[body:end]
        at = blob.find(b"PK\3\4", blob.find(b"PK\7\x08", end))      # past the descriptor behind the member
    return resolve(tree, storages)


# ---- ONNX: just enough of protocol buffers

ONNX_TYPES = {1: "F32", 2: "U8", 3: "I8", 4: "U16", 5: "I16", 6: "I32", 7: "I64", 9: "BOOL", 10: "F16", 11: "F64", 12: "U32", 13: "U64",
              16: "BF16", 17: "F8_E4M3", 19: "F8_E5M2"}


def varint(buffer, at):
    value = shift = 0
    while buffer[at] >= 128:
        value |= (buffer[at] & 127) << shift
        shift, at = shift + 7, at + 1
    return value | buffer[at] << shift, at + 1


def message(buffer):
    """Number and value of each field: an int, or a memoryview."""
    at = 0
    while at < len(buffer):
        tag, at = varint(buffer, at)
        wire = tag & 7
        if wire == 0:
            value, at = varint(buffer, at)
        else:
            size, at = varint(buffer, at) if wire == 2 else ({1: 8, 5: 4}[wire], at)
            value, at = buffer[at:at + size], at + size
        yield tag >> 3, value


def integers(values):
    """Of a repeated field, packed or not."""
    for value in values:
        if isinstance(value, int):
            yield value
            continue
        at = 0
        while at < len(value):
            number, at = varint(value, at)
            yield number


def onnx_tensor(buffer):
    field = {}
    for number, value in message(buffer):
        field.setdefault(number, []).append(value)
    dtype = ONNX_TYPES[field[2][0]]
    if 9 in field:
        data = bytes(field[9][0])
    elif 4 in field or 10 in field:
        data = b"".join(map(bytes, field.get(4) or field[10]))
    else:
        size = NBYTES[dtype]
        words = integers(field.get(5) or field.get(7) or field.get(11) or [])
        data = b"".join((word & (1 << 8 * size) - 1).to_bytes(size, "little") for word in words)
    return bytes(field.get(8, [b""])[0]).decode(), tensor(dtype, list(integers(field.get(1, []))), data)


def onnx_graph(buffer, out):
    def keep(name, value):
        while name in out:
            name += "'"
        out[name] = value

    for number, value in message(buffer):
        if number == 5:                                 # an initializer
            keep(*onnx_tensor(value))
        elif number == 1:                               # a node: constants and subgraphs among its attributes
            node = list(message(value))
            output = next((bytes(v).decode() for n, v in node if n == 2), "?")
            for attribute in (v for n, v in node if n == 5):
                for n, v in message(attribute):
                    if n == 6:
                        onnx_graph(v, out)
                    elif n == 5 and onnx_tensor(v)[1].shape:
                        keep(output, onnx_tensor(v)[1])


def read_onnx(blob, prefix=""):
    out = {}
    for number, value in message(memoryview(blob)):
        if number == 7:
            onnx_graph(value, out)
    return {prefix + name: value for name, value in out.items()}


# ---- CTranslate2 and GGUF

class Cursor:
    def __init__(self, blob):
        self.blob, self.at = blob, 0

    def take(self, kind):
        value, = struct.unpack_from("<" + kind, self.blob, self.at)
        self.at += struct.calcsize("<" + kind)
        return value

    def bytes(self, size):
        self.at += size
        return self.blob[self.at - size:self.at]

    def text(self, size_kind):
        return self.bytes(self.take(size_kind)).rstrip(b"\0").decode()


def read_ctranslate2(blob):
    c = Cursor(blob)
    if c.take("I") != 6:
        raise ValueError("not version 6 of CTranslate2's format")
    c.text("H"), c.take("I")
    out = {}
    for _ in range(c.take("I")):
        name = c.text("H")
        shape = [c.take("I") for _ in range(c.take("B"))]
        dtype = ("F32", "I8", "I16", "I32", "F16", "BF16")[c.take("B")]
        out[name] = tensor(dtype, shape, c.bytes(c.take("I")))
    return out


# GGUF type -> name, elements in a block, bytes of a block
GGUF_TYPES = {0: ("F32", 1, 4), 1: ("F16", 1, 2), 30: ("BF16", 1, 2), 24: ("I8", 1, 1), 26: ("I32", 1, 4), 2: ("Q4_0", 32, 18),
              3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22), 7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 10: ("Q2_K", 256, 84),
              11: ("Q3_K", 256, 110), 12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210)}
GGUF_SCALARS, GGUF_TEXT, GGUF_LIST = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}, 8, 9


def read_gguf(blob):
    """Tensors made of blocks become U8, and their last dimension the bytes of a row."""
    c = Cursor(blob)

    def value(kind):
        if kind == GGUF_TEXT:
            return c.text("Q")
        if kind == GGUF_LIST:
            inner, count = c.take("I"), c.take("Q")
            return [value(inner) for _ in range(count)]
        return c.take(GGUF_SCALARS[kind])

    if c.bytes(4) != b"GGUF" or c.take("I") not in (2, 3):
        raise ValueError("not version 2 or 3 of GGUF")
    tensor_count, pair_count = c.take("Q"), c.take("Q")
    settings = {}
    for _ in range(pair_count):
        key = c.text("Q")
        settings[key] = value(c.take("I"))
    entries = []
    for _ in range(tensor_count):
        name = c.text("Q")
        shape = [c.take("Q") for _ in range(c.take("I"))][::-1]
        entries.append((name, shape, c.take("I"), c.take("Q")))
    align = settings.get("general.alignment", 32)
    start = (c.at + align - 1) // align * align
    out, kinds = {}, {}
    for name, shape, kind, offset in entries:
        dtype, block, size = GGUF_TYPES[kind]
        kinds[dtype] = kinds.get(dtype, 0) + 1
        if block > 1:
            dtype, shape, size = "U8", shape[:-1] + [shape[-1] // block * size], 1
        nbytes = size
        for n in shape:
            nbytes *= n
        out[name] = tensor(dtype, shape, blob[start + offset:start + offset + nbytes])
    return out, {"format": "gguf", "kinds": json.dumps(kinds, sort_keys=True)}
