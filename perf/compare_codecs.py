"""compare_codecs.py: the compressors that perf/compare knows, behind one interface.

encode(data) gives an archive: bytes, or the path of a file that it wrote. decode(archive, out) restores the input into out, an array that is
there and touched, and returns None; or returns bytes or a path where the compressor allows nothing better. How far each got is
said in its `io`: buffer (memory to memory) or file (file to file). SPDX-License-Identifier: Apache-2.0
"""
import ctypes
import ctypes.util
import hashlib
import importlib
import importlib.metadata
import json
import os
import pathlib
import struct
import subprocess
import sys
import types

from compare_files import WORD_NBYTES, segments

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / os.environ.get("BREVIS_BUILD", "build")


class Codec:
    io, note, revision = "buffer", "", 1        # revision: of the adapter, so that older results are not used

    def start(self, path, scratch):
        """path: the input as a file; scratch: a directory for what is written."""
        self.path, self.scratch = pathlib.Path(path), pathlib.Path(scratch)

    def tensors(self, archive):
        """Bytes by tensor where the compressor has such a thing, and what is left over: ({name: bytes}, rest). None: it has not."""
        return None


def typed(data, kind):
    """data as an aligned array: a tensor of a legal file may lie anywhere."""
    import numpy as np
    kind = np.dtype(kind)
    return (data if data.ctypes.data % kind.itemsize == 0 else data.copy()).view(kind)


# ---- general compressors, on the file as bytes

class Zstd(Codec):
    """libzstd itself: the Python packages cannot decode into memory that is there."""

    def start(self, path, scratch):
        super().start(path, scratch)
        self.lib = load_zstd()

    def encode(self, data):
        import numpy as np
        lib = self.lib
        room = np.empty(lib.ZSTD_compressBound(len(data)), np.uint8)
        n = self.checked(lib.ZSTD_compress(room.ctypes.data, len(room), data.ctypes.data, len(data), self.level))
        return room[:n].tobytes()

    def decode(self, archive, out):
        self.checked(self.lib.ZSTD_decompress(out.ctypes.data, len(out), archive, len(archive)))

    def checked(self, n):
        if self.lib.ZSTD_isError(n):
            raise ValueError("zstd: error")
        return n


def load_zstd():
    name = ctypes.util.find_library("zstd")
    if not name:
        raise ImportError("libzstd is not there")
    lib = ctypes.CDLL(name)
    size, pointer = ctypes.c_size_t, ctypes.c_void_p
    for function, arguments in (("compressBound", [size]), ("isError", [size]), ("compress", [pointer, size, pointer, size, ctypes.c_int]),
                                ("decompress", [pointer, size, ctypes.c_char_p, size])):
        f = getattr(lib, "ZSTD_" + function)
        f.argtypes, f.restype = arguments, ctypes.c_uint if function == "isError" else size
    lib.ZSTD_versionString.restype = ctypes.c_char_p
    return lib


class Gzip(Codec):
    def encode(self, data):
        import zlib
        return zlib.compress(data, 6, 31)

    def decode(self, archive, out):
        import zlib
        return zlib.decompress(archive, 31, len(out))


class Lz4(Codec):
    def encode(self, data):
        import lz4.frame
        return lz4.frame.compress(data)

    def decode(self, archive, out):
        import lz4.frame
        return lz4.frame.decompress(archive)


class Snappy(Codec):
    note = "by cramjam, raw format"

    def encode(self, data):
        import cramjam
        return bytes(cramjam.snappy.compress_raw(data))

    def decode(self, archive, out):
        import cramjam
        cramjam.snappy.decompress_raw_into(archive, out)


# ---- compressors of arrays that have no container: header and tensors one after the other, with an index in front

class ByTensor(Codec):
    def encode(self, data):
        pieces = segments(data)
        parts = [bytes(self.encode_part(data[begin:end], dtype)) for _, dtype, begin, end in pieces]
        index = json.dumps([[name, dtype, end - begin, len(part)] for (name, dtype, begin, end), part in zip(pieces, parts)]).encode()
        return b"".join([struct.pack("<I", len(index)), index] + parts)

    @staticmethod
    def index(archive):
        n, = struct.unpack("<I", archive[:4])
        return 4 + n, json.loads(archive[4:4 + n])

    def decode(self, archive, out):
        import numpy as np
        at, index = self.index(archive)
        done = 0
        for _, dtype, nbytes, coded in index:
            part = self.decode_part(archive[at:at + coded], dtype, nbytes, out[done:done + nbytes])
            if part is not None:
                out[done:done + nbytes] = np.frombuffer(part, np.uint8)
            at, done = at + coded, done + nbytes

    def tensors(self, archive):
        _, index = self.index(archive)
        sizes = {name: coded for name, _, _, coded in index if name is not None}
        return sizes, len(archive) - sum(sizes.values())


class Pcodec(ByTensor):
    note = "by tensor; BF16 as integers of 16 bits, FP8 of 8"
    kinds = {"F64": "f8", "F32": "f4", "F16": "f2", "I64": "i8", "I32": "i4", "I16": "i2", "U64": "u8", "U32": "u4", "U16": "u2", "BF16": "u2"}

    def start(self, path, scratch):
        super().start(path, scratch)
        from pcodec import ChunkConfig, standalone
        self.lib, self.config = standalone, ChunkConfig(compression_level=8, enable_8_bit=True)

    def encode_part(self, data, dtype):
        return self.lib.simple_compress(typed(data, self.kinds.get(dtype, "u1")), self.config)

    def decode_part(self, part, dtype, nbytes, out):
        import numpy as np
        kind = np.dtype(self.kinds.get(dtype, "u1"))
        words = np.empty(nbytes // kind.itemsize, kind)
        if self.lib.simple_decompress_into(part, words).n_processed != len(words):
            raise ValueError("pcodec: too few words")
        return words


class OpenZL(ByTensor):
    note = "by tensor, the graph chosen by type: exponents and what else pays by Fse, the rest stored"

    def start(self, path, scratch):
        super().start(path, scratch)
        import openzl.ext as zl
        self.zl, node, graph, self.graphs = zl, zl.nodes, zl.graphs, {}

        def planes(c):
            return node.TransposeSplit()(c, graph.Fse()(c))

        for dtype, build in {None: lambda c: graph.Compress()(c),
                             "BF16": lambda c: node.BFloat16Deconstruct()(c, graph.Store()(c), graph.Fse()(c)),
                             "F16": lambda c: node.ConvertNumToStructLE()(c, planes(c)),
                             "F32": lambda c: node.Float32Deconstruct()(c, planes(c), graph.Fse()(c)),
                             "F8_E4M3": lambda c: graph.Fse()(c), "F8_E5M2": lambda c: graph.Fse()(c)}.items():
            self.graphs[dtype] = zl.Compressor()
            self.graphs[dtype].select_starting_graph(build(self.graphs[dtype]))

    def encode_part(self, data, dtype):
        zl, size = self.zl, WORD_NBYTES.get(dtype, 1)
        words = typed(data, f"u{size}")         # kept while its Input lives, which does not do that itself
        context = zl.CCtx()
        context.ref_compressor(self.graphs.get(dtype, self.graphs[None]))
        context.set_parameter(zl.CParam.FormatVersion, zl.MAX_FORMAT_VERSION)
        return context.compress([zl.Input(zl.Type.Numeric if size > 1 else zl.Type.Serial, words)])

    def decode_part(self, part, dtype, nbytes, out):
        import numpy as np
        return np.ascontiguousarray(self.zl.DCtx().decompress(part)[0].content.as_nparray()).view(np.uint8)


class ZipNN(ByTensor):
    note = "by tensor, method HUFFMAN as its safetensors plugin uses it; integers stored"
    names = {"BF16": "bfloat16", "F16": "float16", "F32": "float32", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2"}

    def start(self, path, scratch):
        super().start(path, scratch)
        stand_in_for_torch()
        from zipnn import ZipNN as Coder
        self.coder = {dtype: Coder(method="HUFFMAN", input_format="byte", bytearray_dtype=name, threads=1) for dtype, name in self.names.items()}

    def encode_part(self, data, dtype):
        coder = self.coder.get(dtype)
        return coder.compress(bytearray(data)) if coder else data.tobytes()     # a copy: it reorders its input

    def decode_part(self, part, dtype, nbytes, out):
        coder = self.coder.get(dtype)
        data = coder.decompress(part) if coder else part
        if len(data) != nbytes:
            raise ValueError(f"zipnn: {len(data)} bytes, not {nbytes}")
        return data


def stand_in_for_torch():
    """zipnn imports torch, for tensors; its coder of bytes does not use it."""
    class Empty(types.ModuleType):
        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            setattr(self, name, type(name, (), {}))
            return self.__dict__[name]

    if importlib.util.find_spec("torch"):
        return
    torch = Empty("torch")
    torch.__path__, torch.__version__, torch.jit = [], "2.9.0", types.SimpleNamespace(script=lambda function: function)
    sys.modules.update({"torch": torch, "safetensors": Empty("safetensors"), "safetensors.torch": Empty("safetensors.torch")})


# ---- compressors of checkpoints

class Glyd(Codec):
    note = "level max; its decoder has no option for threads"

    def encode(self, data):
        import glyd
        return glyd.compress(data, level="max", threads=1)

    def decode(self, archive, out):
        import glyd
        return glyd.decompress(archive)


class FromFile(Codec):
    io = "file"

    def encode(self, data):
        archive = self.scratch / "archive"
        archive.unlink(missing_ok=True)
        self.encode_file(str(self.path), str(archive))
        return archive

    def decode(self, archive, out):
        restored = self.scratch / "restored"
        restored.unlink(missing_ok=True)
        self.decode_file(str(archive), str(restored))
        return restored


class Lmzip(FromFile):
    def encode_file(self, path, archive):
        import lmz
        lmz.compress(path, archive, workers=1)

    def decode_file(self, archive, restored):
        import lmz
        lmz.decompress(archive, restored, workers=1, overwrite=True)


class Z4ai(FromFile):
    note = "its container of safetensors, default level"

    def encode_file(self, path, archive):
        from z4ai import safetensors
        safetensors.compress_file(path, archive, threads=1, workers=1)

    def decode_file(self, archive, restored):
        from z4ai import safetensors
        safetensors.decompress_file(archive, restored, workers=1)


# ---- Brevis

class Brevis(Codec):
    note = "encode: brevis-synth -T 1, its own decoding and comparing included; decode: opening an archive in memory, all data, checksums compared"
    checksums = True

    def encode(self, data):
        archive = self.scratch / "archive.brv"
        done = subprocess.run([BUILD / "brevis-synth", "-f", "-T", "1", "-q", "--favor", self.favor, self.path, "-o", archive], capture_output=True,
                              text=True)
        raise_for(done)
        return archive.read_bytes()

    def decode(self, archive, out):
        decode_all(libbrevis(), archive, out, self.checksums)

    def tensors(self, archive):
        path = self.scratch / "listed.brv"
        path.write_bytes(archive)
        done = subprocess.run([BUILD / "brevis", "list", "--json", path], capture_output=True, text=True)
        raise_for(done)
        sizes = {t["name"]: t["archive_nbytes"] for t in json.loads(done.stdout)["tensors"] if t["data_nbytes"]}
        return sizes, len(archive) - sum(sizes.values())


class BrevisFile(Brevis):
    io, note = "file", "brevis unpack -T 1, from file to file, to compare with those that work so"

    def decode(self, archive, out):
        path, restored = self.scratch / "archive.brv", self.scratch / "restored"
        raise_for(subprocess.run([BUILD / "brevis", "unpack", "-f", "-q", "-T", "1", path, "-o", restored], capture_output=True, text=True))
        return restored


def raise_for(done):
    """A crash of a command becomes one of the process that measures it."""
    if done.returncode < 0:
        os.kill(os.getpid(), -done.returncode)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-200:])


class BrvOptions(ctypes.Structure):
    _fields_ = [("struct_nbytes", ctypes.c_size_t), ("memory_limit", ctypes.c_uint64), ("no_checksums", ctypes.c_int), ("drop_cache", ctypes.c_int)]


class BrvInfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("archive_nbytes", "file_nbytes", "header_nbytes", "data_nbytes", "tensor_count")] + \
               [("format_version", ctypes.c_uint32)]


def libbrevis():
    lib = ctypes.CDLL(BUILD / "libbrevis.so")
    lib.brv_header.restype = ctypes.c_void_p
    return lib


def decode_all(lib, archive, out, checksums):
    """The whole file into out: what a program with the library does that has an archive in memory."""
    handle, text, info = ctypes.c_void_p(), ctypes.create_string_buffer(256), BrvInfo()
    options = BrvOptions(ctypes.sizeof(BrvOptions), 0, not checksums, 0)
    if lib.brv_open_memory(ctypes.c_char_p(archive), ctypes.c_size_t(len(archive)), ctypes.byref(options), ctypes.byref(handle), text):
        raise ValueError(text.value.decode())
    lib.brv_get_info(handle, ctypes.byref(info))
    if info.file_nbytes != len(out):
        raise ValueError(f"{info.file_nbytes} bytes, not {len(out)}")
    header = int(info.header_nbytes)
    out[:8] = list(struct.pack("<Q", header))
    ctypes.memmove(out.ctypes.data + 8, lib.brv_header(handle), header)
    failed = lib.brv_decode_data(handle, ctypes.c_uint64(0), ctypes.c_void_p(out.ctypes.data + 8 + header), ctypes.c_size_t(info.data_nbytes), None, text)
    lib.brv_close(handle)
    if failed:
        raise ValueError(text.value.decode())


# ---- the list

def made(base, **attributes):
    return type(base.__name__, (base,), attributes)


CODECS = {
    "brevis-size": made(Brevis, favor="size"),
    "brevis-balanced": made(Brevis, favor="balanced"),
    "brevis-speed": made(Brevis, favor="speed"),
    "brevis-balanced-nosum": made(Brevis, favor="balanced", checksums=False, note="as brevis-balanced, without comparing checksums"),
    "brevis-balanced-file": made(BrevisFile, favor="balanced"),
    "zipnn": ZipNN, "lmzip": Lmzip, "glyd": Glyd, "z4ai": Z4ai, "openzl": OpenZL, "pcodec": Pcodec,
    "zstd-19": made(Zstd, level=19), "zstd-3": made(Zstd, level=3), "gzip-6": Gzip, "lz4": Lz4, "snappy": Snappy,
}
SPEED_ONLY = ("brevis-balanced-nosum", "brevis-balanced-file")     # their archives are those of brevis-balanced
PACKAGES = {"zipnn": "zipnn", "lmzip": "lmzip", "glyd": "glyd", "z4ai": "z4ai", "openzl": "openzl", "pcodec": "pcodec", "lz4": "lz4", "snappy": "cramjam"}


def version(name):
    """Of what makes and reads the archives; ImportError: it is not here."""
    if name.startswith("brevis"):
        digest = hashlib.sha256()
        for part in ("brevis-synth", "brevis", "libbrevis.so"):
            if not (BUILD / part).exists():
                raise ImportError(f"{part} is not built")
            digest.update((BUILD / part).read_bytes())
        return digest.hexdigest()[:16]
    if name.startswith("zstd"):
        return load_zstd().ZSTD_versionString().decode()
    if name == "gzip-6":
        import zlib
        return zlib.ZLIB_RUNTIME_VERSION
    return importlib.metadata.version(PACKAGES[name])
