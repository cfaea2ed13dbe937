"""vllm.py: brevis.vllm: `vllm serve MODEL --load-format brevis`, for a model directory with .brv archives in place of .safetensors files.

vLLM calls register() by the entry point group vllm.general_plugins, in every process it starts. Settings go through
--model-loader-extra-config '{"threads": 8, "numa": "local"}'. Tensors are decoded a batch at a time, each into memory of its own that is
never used again for another: vLLM may keep what it is given. docs/PYTHON.md says what of this has been run.
SPDX-License-Identifier: Apache-2.0
"""

import os
from collections.abc import Iterable, Iterator
from typing import Any

from . import _open
from ._errors import UsageError

BATCH_NBYTES = 256 << 20  # decoded ahead of what vLLM has taken; a larger tensor is a batch of its own
SETTINGS = {"threads": None, "numa": None, "backend": "pread", "verify": True}


def batches(sizes: Iterable[tuple[str, int]], limit: int = BATCH_NBYTES) -> Iterator[list[str]]:
    """Cuts (name, nbytes) pairs into lists of names with about `limit` bytes together."""
    batch: list[str] = []
    total = 0
    for name, nbytes in sizes:
        if batch and total + nbytes > limit:
            yield batch
            batch, total = [], 0
        batch.append(name)
        total += nbytes
    if batch:
        yield batch


def weights(path: _open.Path, framework: str = "pt", **settings: Any) -> Iterator[tuple[str, Any]]:
    """Yields (name, tensor) for everything in an archive or a directory of them, in the order of the data, on the CPU."""
    with _open.safe_open(path, framework, **settings) as file:
        for names in batches(file._sizes()):
            decoded = file.get_tensors(names)
            for name in names:
                yield name, decoded.pop(name)


def settings_of(extra_config: dict[str, Any] | None) -> dict[str, Any]:
    """The loader's settings out of vLLM's extra config. UsageError for what is not among them."""
    extra_config = extra_config or {}
    if not isinstance(extra_config, dict):
        raise UsageError(f"model_loader_extra_config: expected a dict, found {type(extra_config).__name__}")
    if unknown := sorted(set(extra_config) - set(SETTINGS)):
        raise UsageError(f"model_loader_extra_config: {', '.join(unknown)}: expected some of {', '.join(SETTINGS)}")
    return {**SETTINGS, **extra_config}


def register() -> None:
    """Gives vLLM the load format "brevis". Called by vLLM; may be called again."""
    from vllm.model_executor.model_loader import register_model_loader
    from vllm.model_executor.model_loader.base_loader import BaseModelLoader

    class BrevisModelLoader(BaseModelLoader):
        """Loads models from Brevis archives."""

        def __init__(self, load_config):
            super().__init__(load_config)
            self.settings = settings_of(load_config.model_loader_extra_config)

        def _directory(self, model_config):
            """The local directory or file with the weights; fetched from the hub if the model is not local."""
            model = getattr(model_config, "model_weights", None) or model_config.model
            if os.path.exists(model):
                return model
            from vllm.model_executor.model_loader.weight_utils import download_weights_from_hf

            return download_weights_from_hf(
                model, self.load_config.download_dir, ["*.brv"], model_config.revision, ignore_patterns=self.load_config.ignore_patterns
            )

        def download_model(self, model_config):
            self._directory(model_config)

        def load_weights(self, model, model_config):
            wanted = {name for name, _ in model.named_parameters()}
            loaded = model.load_weights(weights(self._directory(model_config), **self.settings))
            if loaded is not None and getattr(model_config, "quantization", None) is None and (missing := sorted(wanted - set(loaded))):
                raise ValueError(f"{len(missing)} weights are not in the archive: {', '.join(missing[:5])}")

    register_model_loader("brevis")(BrevisModelLoader)
