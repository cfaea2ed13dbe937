"""check_reading.py: the Python package reads what the files hold: corpus files beside the safetensors library, all types, slices, directories.

SPDX-License-Identifier: Apache-2.0
"""

import json
import mmap
import os
import random
import subprocess
import sys

from pyarchives import MODELS, ROOT, bf16_weights, check, compress, contents, every_type, example, make, raises, small_model, succeed
from tap import SYNTH, Skip, Suite

import numpy as np
import safetensors
import safetensors.numpy

import brevis
import brevis.numpy

CORPUS_LIMIT = 50_000_000  # larger files say nothing new, and compressing is slow


def random_key(rng, shape):
    """An index expression that both libraries take: ints, slices inside the tensor, an ellipsis."""
    keys = []
    for n in shape[: rng.randint(0, len(shape))]:
        if rng.random() < 0.3:
            keys.append(rng.randrange(-n, n))
        else:
            low = rng.randrange(n)
            keys.append(slice(low, rng.randint(low + 1, n), rng.choice([None, 1, 1, 2, 3])))
    if rng.random() < 0.3:
        keys.append(Ellipsis)
    return tuple(keys)


def check_file(path, scratch):
    """Every tensor and random parts of it, by every way there is."""
    link = scratch / path.name
    link.symlink_to(path)
    archive, truth, rng = compress(link), contents(path), random.Random(path.name)
    with safetensors.safe_open(path, "np") as theirs, brevis.safe_open(archive, "np", threads=2) as ours, brevis.safe_open(
        archive, backend="mmap", threads=1
    ) as mapped:
        check(ours.keys() == theirs.keys(), "other keys")
        check(ours.offset_keys() == list(truth), "another order of data")
        check(ours.metadata() == theirs.metadata(), f"metadata: {ours.metadata()}")
        together = ours.get_tensors()
        check(list(together) == list(truth), "get_tensors: other names")
        for name, (dtype, shape, data) in truth.items():
            array = ours.get_tensor(name)
            check(array.tobytes() == data, f"{name}: other bytes")
            check(together[name].tobytes() == data and mapped.get_tensor(name).tobytes() == data, f"{name}: other bytes by another way")
            part, their_part = ours.get_slice(name), theirs.get_slice(name)
            check(
                part.get_shape() == shape == their_part.get_shape() and part.get_dtype() == dtype == their_part.get_dtype(),
                f"{name}: described otherwise",
            )
            if not data:
                continue
            if dtype.startswith("F8"):  # its NumPy side cannot read these
                their_part = np.frombuffer(data, array.dtype).reshape(shape)
            wanted = their_part[...]
            check(
                (array.dtype, array.shape) == (wanted.dtype, wanted.shape),
                f"{name}: {array.dtype}{array.shape}, not {wanted.dtype}{wanted.shape}",
            )
            for _ in range(4):
                key = random_key(rng, shape)
                found, wanted = part[key], their_part[key]
                check(
                    (found.dtype, found.shape) == (wanted.dtype, wanted.shape) and found.tobytes() == wanted.tobytes(),
                    f"{name}{key}: not the same",
                )
    archive.unlink()


def slices_by_numpy(scratch):
    """Large enough that runs are cut, joined and batched."""
    from pyarchives import noise

    shapes = {"wide": [3, 200_000], "tall": [300_000, 5], "deep": [4, 3, 50_000, 2], "flat": [500_000], "cube": [60, 70, 80]}
    archive = make(scratch, *((name, "U16", shape, noise(2 * int(np.prod(shape)), i)) for i, (name, shape) in enumerate(shapes.items())))
    keys = [
        np.s_[:],
        np.s_[...],
        np.s_[0],
        np.s_[-1],
        np.s_[1:2],
        np.s_[::2],
        np.s_[1::3],
        np.s_[..., 0],
        np.s_[..., ::2],
        np.s_[..., -1:],
        np.s_[0:0],
        np.s_[5:2],
        np.s_[:10_000_000],
        np.s_[-10_000_000:2],
        np.s_[1, ..., 1],
        np.s_[:, 1],
        np.s_[:, 1:2],
        np.s_[::2, ..., 1::2],
        np.int64(1),
        True,
        np.s_[:, ::7, ..., ::3],
        np.s_[2:, 1:, ...],
    ]
    with brevis.safe_open(archive) as file:
        for name, shape in shapes.items():
            whole, part = file.get_tensor(name), file.get_slice(name)
            for key in keys:
                if sum(k is not Ellipsis for k in (key if isinstance(key, tuple) else (key,))) > len(shape):
                    continue
                wanted, found = whole[int(key) if key is True else key], part[key]
                check(
                    isinstance(found, np.ndarray) and found.shape == wanted.shape and (found == wanted).all(),
                    f"{name}[{key}]: {found.shape}, {wanted.shape}",
                )
                check(found.flags.c_contiguous and found.flags.writeable, f"{name}[{key}]: not an ordinary array")


def narrow_types(scratch):
    truth = {name: (dtype, data) for name, dtype, _, data in every_type()}
    with brevis.safe_open(make(scratch, *every_type())) as file:
        for name, (dtype, data) in truth.items():
            if dtype in ("F4", "F6_E2M3", "F6_E3M2"):
                array, bits = file.get_tensor(name), 4 if dtype == "F4" else 6
                row = 8 * bits // 8
                check(array.dtype == np.uint8 and array.shape == (len(data),) and array.tobytes() == data, f"{dtype}: not its bytes")
                check(file.get_slice(name)[1:3].tobytes() == data[row : 3 * row], f"{dtype}: rows")
                check(file.get_slice(name)[2, 4:].tobytes() == data[2 * row + row // 2 : 3 * row], f"{dtype}: half a row")
                check(file.get_slice(name).get_shape() == [6, 8], f"{dtype}: its shape is that of the header")


def types_of(source):
    """The types that another process finds, one where `source` ran first."""
    program = (
        source
        + "\nimport brevis, sys\nfor n, a in brevis.load_file(sys.argv[1]).items(): print(n, a.dtype, a.shape, a.tobytes().hex(), sep='|')"
    )

    def run(archive):
        lines = succeed(sys.executable, "-c", program, archive).stdout.decode().splitlines()
        return {fields[0]: fields[1:] for fields in (line.split("|") for line in lines)}

    return run


def main():
    suite = Suite()
    for path in sorted(MODELS.rglob("*.safetensors")):
        if path.stat().st_size > CORPUS_LIMIT or path.name not in LISTED:
            continue
        with suite.case(f"python: {path.relative_to(MODELS)} as the safetensors library reads it") as scratch:
            check_file(path, scratch)
    with suite.case("python: slices are what NumPy makes of the whole tensor") as scratch:
        slices_by_numpy(scratch)
    with suite.case("python: types narrower than a byte come as bytes, whole or in rows") as scratch:
        narrow_types(scratch)
    with suite.case("python: with ml_dtypes every type of whole bytes has its own dtype") as scratch:
        found = types_of("")(make(scratch, *every_type()))
        for name, dtype, shape, data in every_type():
            check(found[name][2] == data.hex(), f"{dtype}: other bytes")
        check(
            found["of BF16"][:2] == ["bfloat16", "(6, 8)"]
            and found["of F8_E4M3"][0] == "float8_e4m3fn"
            and found["of F8_E8M0"][0] == "float8_e8m0fnu"
            and found["of C64"][0] == "complex64"
            and found["of BOOL"][0] == "bool",
            f"{ {k: v[0] for k, v in found.items()} }",
        )
    with suite.case("python: without ml_dtypes BF16 and FP8 are raw views of the same shape") as scratch:
        found = types_of("import sys; sys.modules['ml_dtypes'] = None")(make(scratch, *every_type()))
        for name, dtype, shape, data in every_type():
            check(found[name][2] == data.hex(), f"{dtype}: other bytes")
        check(
            found["of BF16"][:2] == ["uint16", "(6, 8)"]
            and found["of F8_E5M2"][:2] == ["uint8", "(6, 8)"]
            and found["of F16"][0] == "float16",
            f"{found['of BF16'][:2]}",
        )
    with suite.case("python: from bytes, path, bytes of a path, PathLike, bytearray, mmap: the same") as scratch:
        archive = small_model(scratch)
        truth = {name: data for name, (_, _, data) in contents(archive.with_suffix(".safetensors")).items()}
        data = archive.read_bytes()
        with open(archive, "rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        for what, load in (
            ("path", lambda: brevis.load_file(archive)),
            ("str", lambda: brevis.load_file(str(archive))),
            ("bytes", lambda: brevis.load(data)),
            ("bytes of a path", lambda: brevis.load_file(os.fsencode(archive))),
            ("bytearray", lambda: brevis.load(bytearray(data))),
            ("mmap", lambda: brevis.load(mapped)),
            ("numpy", lambda: brevis.numpy.load_file(archive)),
            ("memory", lambda: brevis.numpy.load(data)),
            ("mmap backend", lambda: brevis.load_file(archive, backend="mmap")),
            ("unverified", lambda: brevis.load_file(archive, verify=False)),
        ):
            check({name: array.tobytes() for name, array in load().items()} == truth, what)
    with suite.case("python: scalars, empty tensors, no tensors, metadata or none, odd names") as scratch:
        names = ["", "a b", "ключ", "x" * 5000, 'quote " and \\', "new\nline", "😀"]
        archive = make(
            scratch,
            *((name, "U8", [1], bytes([i])) for i, name in enumerate(names)),
            ("none", "F32", [0, 4], b""),
            ("also", "BF16", [3, 0], b""),
            ("scalar", "I32", [], b"\1\2\3\4"),
        )
        with brevis.safe_open(archive) as file:
            check(file.metadata() is None, f"metadata {file.metadata()!r}")
            check([int(file.get_tensor(name)[0]) for name in names] == list(range(len(names))), "a name leads elsewhere")
            check(file.get_tensor("none").shape == (0, 4) and file.get_slice("also")[1:].shape == (2, 0), "empty tensors have a shape too")
            check(
                file.get_tensor("scalar").shape == () and file.get_slice("scalar")[...] == 0x04030201 == file.get_slice("scalar")[()],
                "scalar",
            )
            check(len(file) == len(names) + 3 and "none" in file and "nothing" not in file and "\ud800" not in file, "len and in")
        empty = scratch / "empty.safetensors"
        empty.write_bytes(b"\x08" + bytes(7) + b"{}      ")
        check(brevis.load_file(compress(empty)) == {}, "a file without tensors")
        with brevis.safe_open(small_model(scratch, "meta")) as file:
            check(file.metadata() == {"format": "np", "made by": "hand"}, f"metadata {file.metadata()!r}")
    with suite.case("python: get_tensors gives what is named, once") as scratch:
        with brevis.safe_open(small_model(scratch)) as file:
            check(list(file.get_tensors(["scale", "embed", "scale"])) == ["scale", "embed"], "not in the order of the names")
            check(
                file.get_tensors([]) == {} and list(file.get_tensors(name for name in ["bias"])) == ["bias"],
                "none, or a generator of names",
            )
    with suite.case("python: read_into fills the caller's memory of every kind") as scratch:
        archive = small_model(scratch)
        truth = contents(archive.with_suffix(".safetensors"))["embed"][2]
        import ml_dtypes

        with brevis.safe_open(archive) as file:
            big = np.zeros((4, 300, 64), ml_dtypes.bfloat16)
            for buffer in (
                bytearray(len(truth)),
                np.empty(len(truth), np.uint8),
                np.empty((300, 128), np.uint8),
                np.empty((300, 64), ml_dtypes.bfloat16),
                memoryview(bytearray(len(truth))),
                mmap.mmap(-1, len(truth)),
                big[2],
            ):
                file.read_into("embed", buffer)
                found = buffer.tobytes() if hasattr(buffer, "tobytes") else bytes(buffer)
                check(found == truth, f"{type(buffer).__name__}: other bytes")
            check(not big[1].any() and not big[3].any() and big[2].any(), "written outside")
            scalar = np.zeros((), np.float32)
            file.read_into("scale", scalar)
            check(scalar == file.get_tensor("scale"), "a scalar")
    with suite.case("python: a directory of archives is one file") as scratch:
        model = scratch / "model"
        model.mkdir()
        small_model(model, "a")
        (model / "a.brv").rename(model / "model-00001-of-00002.safetensors.brv")
        make(model, ("lm_head", "U8", [4], b"1234"), name="b", metadata={"format": "pt", "b": "2"}).rename(
            model / "model-00002-of-00002.safetensors.brv"
        )
        for path in model.glob("*.safetensors"):
            path.unlink()
        with brevis.safe_open(model) as file:
            check(
                file.offset_keys() == ["embed", "bias", "scale", "lm_head"]
                and file.keys() == sorted(file.offset_keys())
                and len(file) == 4,
                f"{file.offset_keys()}",
            )
            check(
                file.get_slice("lm_head")[1:3].tobytes() == b"23" and list(file.get_tensors(["lm_head", "bias"])) == ["lm_head", "bias"],
                "other bytes",
            )
            check(file.metadata() == {"format": "np", "made by": "hand", "b": "2"}, f"metadata {file.metadata()}")
        check(list(brevis.load_file(model)) == ["embed", "bias", "scale", "lm_head"], "load_file")
    with suite.case("python: an index says which archives belong to the checkpoint") as scratch:
        for name in ("model-1", "model-2", "consolidated"):
            make(scratch, (name, "U8", [4], b"1234"), ("both" if name != "model-2" else "other", "U8", [1], b"1"), name=name)
        (scratch / "model-2.brv").rename(scratch / "model-2.safetensors.brv")
        index = scratch / "model.safetensors.index.json"
        index.write_text(
            json.dumps(
                {
                    "metadata": {},
                    "weight_map": {"model-1": "model-1.safetensors", "model-2": "model-2.safetensors", "both": "model-1.safetensors"},
                }
            )
        )
        check(sorted(brevis.load_file(scratch)) == ["both", "model-1", "model-2", "other"], "other archives")
        (scratch / "model-2.safetensors.brv").unlink()
        raises(FileNotFoundError, "model-2.safetensors.brv", brevis.load_file, scratch)
        for bad in (
            "{",
            "[]",
            "{}",
            '{"weight_map": 3}',
            '{"weight_map": {"a": 3}}',
            '{"weight_map": {"a": "../a.safetensors"}}',
            '{"weight_map": {"a": "/a"}}',
        ):
            index.write_text(bad)
            raises(brevis.InputError, "index", brevis.load_file, scratch)
    with suite.case("python: a directory that brevis-synth made, with its manifest") as scratch:
        source = scratch / "odd % name"
        source.mkdir()
        for name in ("one", "t%wo"):
            small_model(source, name)
            (source / f"{name}.brv").unlink()
        (source / "one.safetensors").write_bytes(
            (source / "t%wo.safetensors")
            .read_bytes()
            .replace(b'"embed"', b'"ebmed"')
            .replace(b'"bias"', b'"bais"')
            .replace(b'"scale"', b'"scaly"')
        )
        (source / "config.json").write_text("{}")
        succeed(SYNTH, "-q", source, "-o", scratch / "out")
        check(sorted(brevis.load_file(scratch / "out")) == ["bais", "bias", "ebmed", "embed", "scale", "scaly"], "other tensors")
    with suite.case("python: the examples of README.md and docs/PYTHON.md run as they stand") as scratch:
        table = [
            (name, "BF16", [300, 64], bf16_weights(300 * 64, i)) for i, name in enumerate(("lm_head.weight", "wte.weight", "wpe.weight"))
        ]
        make(scratch, *table, name="model")
        for document in ("README.md", "docs/PYTHON.md"):
            program = "buffer = bytearray(300 * 64 * 2)\n" + example(document) + "\nassert next(iter(weights.values())).shape == (300, 64)"
            succeed(sys.executable, "-c", program, cwd=scratch)
    return suite.end()


LISTED = {
    os.path.basename(line)
    for line in subprocess.run([ROOT / "scripts/fetch-models", "--list", "test"], check=True, capture_output=True, text=True).stdout.split()
}
if __name__ == "__main__":
    sys.exit(main())
