"""check_torch.py: torch tensors and modules out of archives, and the loader for vLLM, with a real torch.

Run by python_suite.py under an interpreter that has torch; the safetensors library is taken from the test environment. What vLLM is here,
is a stand-in with the interface that its documentation names (an engine needs a GPU stack). SPDX-License-Identifier: Apache-2.0
"""

import os
import sys
import types

from pyarchives import check, compress, contents, every_type, example, make, noise, raises, run_cases, small_model

import torch

sys.path += os.environ.get("BREVIS_TEST_SITE", "").split(os.pathsep)
import safetensors.torch

import brevis
import brevis.torch
import brevis.vllm
from brevis import UsageError


class Translator(torch.nn.Module):
    """A small model of the usual parts: tied embeddings, attention, normalisation, buffers."""

    def __init__(self, tie=True):
        super().__init__()
        self.embed = torch.nn.Embedding(500, 64)
        self.body = torch.nn.Transformer(64, 4, 2, 2, 128, dropout=0.0, batch_first=True)
        self.norm = torch.nn.BatchNorm1d(64)
        self.head = torch.nn.Linear(64, 500, bias=False)
        if tie:
            self.head.weight = self.embed.weight

    def forward(self, words):
        hidden = self.body(self.embed(words), self.embed(words.flip(1)))
        return self.head(self.norm(hidden.transpose(1, 2)).transpose(1, 2))


def model_files(folder, kind=torch.float32, tie=True):
    """A model, and its weights as a .safetensors file and an archive."""
    torch.manual_seed(1)
    model = Translator(tie).to(kind).eval()
    path = folder / "model.safetensors"
    if tie:
        safetensors.torch.save_model(model, str(path))
    else:
        safetensors.torch.save_file(model.state_dict(), str(path))
    return model, path, compress(path)


def outputs(model):
    with torch.no_grad():
        return model(torch.arange(80).reshape(4, 20) % 500)


def equal(a, b):
    """The same type, shape and bits."""
    as_bytes = lambda tensor: tensor.contiguous().reshape(-1).view(torch.uint8)
    return (a.dtype, a.shape, a.device) == (b.dtype, b.shape, b.device) and torch.equal(as_bytes(a), as_bytes(b))


def identical_outputs(folder):
    for kind in (torch.float32, torch.bfloat16):
        model, path, archive = model_files(folder, kind)
        archive_model, file_model = Translator().to(kind).eval(), Translator().to(kind).eval()
        safetensors.torch.load_model(file_model, str(path))
        check(brevis.torch.load_model(archive_model, archive) == (set(), []), "something is missing, or unexpected")
        check(
            equal(outputs(archive_model), outputs(file_model)) and equal(outputs(archive_model), outputs(model)), f"{kind}: other outputs"
        )
        check(archive_model.head.weight.data_ptr() == archive_model.embed.weight.data_ptr(), "no longer tied")
        again = {"brevis": brevis, "model": Translator().to(kind).eval()}
        os.chdir(folder)
        exec(example("docs/PYTHON.md", 1), again)
        check(equal(outputs(again["model"]), outputs(model)), "the example of docs/PYTHON.md loads something else")
        os.chdir("/")
        archive.unlink()


def same_as_library(folder):
    _, path, archive = model_files(folder, tie=False)
    wanted = safetensors.torch.load_file(str(path))
    for what, found in (
        ("load_file", brevis.torch.load_file(archive)),
        ("load", brevis.torch.load(archive.read_bytes())),
        ("mmap", brevis.torch.load_file(archive, backend="mmap")),
        ("safe_open", brevis.load_file(archive, "torch", torch.device("cpu"))),
    ):
        check(found.keys() == wanted.keys() and all(equal(found[name], wanted[name]) for name in wanted), what)
    with brevis.safe_open(archive, framework="pt") as ours, safetensors.safe_open(str(path), framework="pt") as theirs:
        for name in ours.keys():
            check(equal(ours.get_slice(name)[1:3], theirs.get_slice(name)[1:3]) if wanted[name].ndim else True, f"{name}: rows")
            check(
                equal(ours.get_slice(name)[..., ::2], wanted[name][..., ::2].contiguous()) if wanted[name].ndim else True,
                f"{name}: columns",
            )
            check(equal(ours.get_slice(name)[...], wanted[name]), f"{name}: whole")
        found = ours.get_tensor("head.weight")
        found.zero_()
        check(equal(ours.get_tensor("head.weight"), wanted["head.weight"]), "a tensor shares memory with another")


def types_in_torch(folder):
    archive = make(folder, *every_type(), ("none", "F32", [3, 0], b""), ("scalar", "I64", [], noise(8)))
    found = brevis.torch.load_file(archive)
    for name, (dtype, shape, data) in contents(archive.with_suffix(".safetensors")).items():
        tensor = found[name]
        check(bytes(tensor.reshape(-1).view(torch.uint8).numpy()) == data if tensor.numel() else not data, f"{dtype}: other bytes")
        narrow = dtype in ("F4", "F6_E2M3", "F6_E3M2")
        check(list(tensor.shape) == ([len(data)] if narrow else shape), f"{dtype}: {tensor.shape}")
    kinds = {name: tensor.dtype for name, tensor in found.items()}
    check(
        kinds["of BF16"] == torch.bfloat16
        and kinds["of F16"] == torch.float16
        and kinds["of BOOL"] == torch.bool
        and kinds["of C64"] == torch.complex64,
        f"{kinds}",
    )
    check(
        kinds["of U32"] == getattr(torch, "uint32", torch.int32) and kinds["of F8_E4M3"] == getattr(torch, "float8_e4m3fn", torch.uint8),
        f"{kinds}",
    )


def models_that_do_not_fit(folder):
    _, _, tied = model_files(folder)
    (folder / "untied").mkdir()
    _, _, untied = model_files(folder / "untied", tie=False)
    raises(RuntimeError, 'Missing key(s) in state_dict: "', brevis.torch.load_model, Translator(tie=False), tied)
    raises(RuntimeError, 'Unexpected key(s) in state_dict: "head.weight"', brevis.torch.load_model, Translator(), untied)
    missing, unexpected = brevis.torch.load_model(Translator(tie=False), tied, strict=False)
    check(len(missing) == 1 and not unexpected, f"{missing} {unexpected}")
    raises(RuntimeError, "size mismatch", brevis.torch.load_model, torch.nn.ModuleDict({"head": torch.nn.Linear(3, 3)}), untied)
    bad = bytearray(untied.read_bytes())
    bad[-1000] ^= 1
    (folder / "bad.brv").write_bytes(bad)
    model = Translator(tie=False)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    raises(brevis.DamagedError, "", brevis.torch.load_model, model, folder / "bad.brv")
    check(all(equal(tensor, before[name]) for name, tensor in model.state_dict().items()), "changed by a damaged archive")


def torch_buffers(folder):
    archive = small_model(folder)
    with brevis.safe_open(archive, "pt") as file:
        for buffer in (
            torch.empty(300, 64, dtype=torch.bfloat16),
            torch.empty(300 * 64 * 2, dtype=torch.uint8),
            torch.nn.Parameter(torch.empty(300, 64, dtype=torch.bfloat16)),
        ):
            file.read_into("embed", buffer)
            check(
                torch.equal(buffer.detach().reshape(-1).view(torch.uint8), file.get_tensor("embed").reshape(-1).view(torch.uint8)),
                "other bytes",
            )
        scalar = torch.empty(())
        file.read_into("scale", scalar)
        check(scalar == file.get_tensor("scale"), "a scalar")
        raises(UsageError, "float16", file.read_into, "embed", torch.empty(300, 64, dtype=torch.float16))
        raises(UsageError, "contiguous", file.read_into, "embed", torch.empty(64, 300, dtype=torch.bfloat16).T)
        raises(UsageError, "meta", file.read_into, "embed", torch.empty(300, 64, dtype=torch.bfloat16, device="meta"))
    raises(UsageError, "device 'nowhere'", brevis.safe_open, archive, "pt", "nowhere")
    check(brevis.load_file(archive, "pt", "meta")["embed"].device.type == "meta", "not on the device that was asked for")


class BaseModelLoader:
    """What vLLM's class of that name has."""

    def __init__(self, load_config):
        self.load_config = load_config


def stand_in():
    """vllm as far as a loader sees it: register_model_loader, BaseModelLoader, download_weights_from_hf. Returns the registry and the
    downloads."""
    registry, downloads = {}, []

    def register_model_loader(load_format):
        def wrapper(cls):
            check(issubclass(cls, BaseModelLoader), "no BaseModelLoader")
            registry[load_format] = cls
            return cls

        return wrapper

    def download_weights_from_hf(model, cache_dir, allow_patterns, revision=None, subfolder=None, ignore_patterns=None):
        downloads.append((model, cache_dir, allow_patterns, revision, ignore_patterns))
        return cache_dir

    for name, members in (
        ("vllm", {}),
        ("vllm.model_executor", {}),
        ("vllm.model_executor.model_loader", {"register_model_loader": register_model_loader}),
        ("vllm.model_executor.model_loader.base_loader", {"BaseModelLoader": BaseModelLoader}),
        ("vllm.model_executor.model_loader.weight_utils", {"download_weights_from_hf": download_weights_from_hf}),
    ):
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(members)
    return registry, downloads


def config(**members):
    return types.SimpleNamespace(**members)


class Served(Translator):
    """A model as vLLM's are: it takes its weights from an iterator, keeps some of them as they are, and says what it took."""

    def load_weights(self, pairs):
        self.kept, taken = {}, set()
        own = dict(self.named_parameters(), **dict(self.named_buffers()))
        for name, tensor in pairs:
            self.kept[name] = tensor
            own[name].data.copy_(tensor)
            taken.add(name)
        return taken


def load_config(extra=None, **members):
    return config(
        model_loader_extra_config={} if extra is None else extra, download_dir=None, ignore_patterns=None, load_format="brevis", **members
    )


def vllm_loader(folder):
    registry, downloads = stand_in()
    brevis.vllm.register()
    brevis.vllm.register()
    model, path, archive = model_files(folder, tie=False)
    loader = registry["brevis"](load_config({"threads": 2, "backend": "mmap", "numa": "interleave"}))
    served, model_config = Served(tie=False).eval(), config(model=str(folder), revision=None, quantization=None)
    check(loader.download_model(model_config) is None and not downloads, "a local model is fetched")
    loader.load_weights(served, model_config)
    check(equal(outputs(served), outputs(model)), "other outputs")
    wanted = safetensors.torch.load_file(str(path))
    check(all(equal(served.kept[name], wanted[name]) for name in wanted), "a tensor changed after it was handed out")
    addresses = sorted((tensor.data_ptr(), tensor.numel() * tensor.element_size()) for tensor in served.kept.values())
    check(all(a + n <= b for (a, n), (b, _) in zip(addresses, addresses[1:])), "two tensors have memory in common")
    loader.load_weights(served, config(model=str(archive), revision=None))
    # from the hub
    remote = registry["brevis"](load_config())
    remote.load_config.download_dir = str(folder)
    remote.load_weights(served, config(model="someone/model", revision="r1", quantization=None))
    check(downloads == [("someone/model", str(folder), ["*.brv"], "r1", None)], f"{downloads}")
    # an archive that lacks weights
    (folder / "less").mkdir()
    make(folder / "less", ("norm.weight", "F32", [64], noise(256)))
    raises(
        ValueError,
        "not in the archive",
        loader.load_weights,
        Served(tie=False),
        config(model=str(folder / "less"), revision=None, quantization=None),
    )
    loader.load_weights(Served(tie=False), config(model=str(folder / "less"), revision=None, quantization="fp8"))
    for extra, text in (({"thread": 2}, "thread: expected some of"), ("x", "dict")):
        raises(UsageError, text, registry["brevis"], load_config(extra))


def batching(_):
    check(
        list(brevis.vllm.batches([], 10)) == [] and list(brevis.vllm.batches([("a", 50)], 10)) == [["a"]], "none, or one that is too large"
    )
    sizes = [(str(i), i % 7) for i in range(100)]
    cut = list(brevis.vllm.batches(sizes, 10))
    check([name for batch in cut for name in batch] == [name for name, _ in sizes], "names lost, or in another order")
    check(all(sum(int(name) % 7 for name in batch) <= 10 for batch in cut), "a batch is too large")


def entry_point(_):
    import importlib.metadata

    found = [point for point in importlib.metadata.entry_points(group="vllm.general_plugins") if point.name == "brevis"]
    check(found and found[0].load() is brevis.vllm.register, "the entry point leads elsewhere")


CASES = (
    ("a model's outputs are those that the .safetensors gives", identical_outputs),
    ("tensors are those of safetensors.torch", same_as_library),
    ("types", types_in_torch),
    ("models that do not fit", models_that_do_not_fit),
    ("tensors as buffers", torch_buffers),
    ("vLLM's interface, by a stand-in", vllm_loader),
    ("batches", batching),
    ("the plug-in's entry point", entry_point),
)


if __name__ == "__main__":
    sys.exit(run_cases(f"python, torch {torch.__version__}", CASES))
