"""A small embedding model out of a package: vectors of words, averaged. Nothing is downloaded when it is used.

The package wordllama carries the weights (16 MB, 32,000 vectors of 256 numbers); they are read here, because its own
loader looks for one of its files in the wrong folder and then asks the network for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from compact.core.errors import ConfigError
from compact.extras import install_line
from compact.recall.semantic import Embed

_WEIGHTS, _VOCABULARY = "weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json"


def load_packaged_model() -> Embed:
    """Return a function that makes vectors of texts; raise ConfigError if its package is not installed."""
    package = find_spec("wordllama")
    if package is None or not package.submodule_search_locations:
        hint = f"{install_line('semantic')}, or pass CompactManager(embed=…)"
        raise ConfigError("semantic search needs an embedding model", field="recall.semantic", hint=hint)
    numpy: Any = import_module("numpy")
    home = Path(package.submodule_search_locations[0])
    weights: Any = import_module("safetensors.numpy").load_file(home / _WEIGHTS)["embedding.weight"].astype("float32")
    tokenizer: Any = import_module("tokenizers").Tokenizer.from_file(str(home / _VOCABULARY))

    def embed(texts: Sequence[str]) -> list[list[float]]:
        readable = [text.encode(errors="replace").decode() for text in texts]  # half a surrogate pair has no vector
        encoded = tokenizer.encode_batch(readable, add_special_tokens=False)
        empty = numpy.zeros(weights.shape[1])
        return [(weights[text.ids].mean(axis=0) if text.ids else empty).tolist() for text in encoded]

    return embed
