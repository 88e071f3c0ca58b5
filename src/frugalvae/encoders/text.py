"""What a text tower is told of a class, and a text tower in the format ONNX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.encoders.hub import Layout
from frugalvae.encoders.onnx_file import read_model
from frugalvae.encoders.preprocess import read_settings
from frugalvae.encoders.session import Network
from frugalvae.errors import InputError, needing

OUTPUTS = ("text_embeds", "pooler_output")
CONTEXT = {"clip": 77, "siglip": 64, "siglip2": 64}  # tokens, where config.json is silent
AT_ONCE = 16  # sentences


def sentence(name: str) -> str:
    """A class's name as CLIP and SigLIP like to read it.

    >>> sentence("001.Black_footed_Albatross")
    'a photo of a Black footed Albatross.'
    """
    return f"a photo of a {spoken(name)}."


def spoken(name: str) -> str:
    """A class's name as people say it: folders often carry numbers and underscores.

    >>> spoken("birds/001.Black_footed_Albatross"), spoken("707-320")
    ('Black footed Albatross', '707-320')
    """
    last = name.rsplit("/", maxsplit=1)[-1]
    return re.sub(r"^\d+\.", "", last).replace("_", " ").strip() or name


class TextNetwork:
    """The text tower of CLIP or SigLIP, which is loaded when it is first needed, and kept.

    Every sentence is padded to the model's context, with the token that the model's
    tokenizer pads with: CLIP's own end, SigLIP's own padding. The tower does not go to other
    processes with its encoder: they encode images.
    """

    def __init__(self, layout: Layout, threads: int | None) -> None:
        self.layout, self.threads = layout, threads

    @cached_property
    def network(self) -> Network:
        """The tower, loaded."""
        assert self.layout.text is not None
        return Network(read_model(self.layout.text), self.threads, path=self.layout.text)

    def __getstate__(self) -> dict[str, Any]:
        return {"layout": self.layout, "threads": self.threads}

    def describe(self, names: Sequence[str], dim: int) -> NDArray[np.float32]:
        """A feature (k, dim) of each class's name, put into a sentence."""
        tokens, there = self._tokens([sentence(name) for name in names])
        network, path = self.network, self.layout.text
        output = next((name for name in OUTPUTS if name in network.outputs), None)
        if output is None:
            raise InputError(
                f"{path}: its outputs are {', '.join(network.outputs)}; expected "
                f"{' or '.join(OUTPUTS)}"
            )
        given = {"input_ids": tokens, "attention_mask": there}
        parts = [
            network.run(
                output, {n: given[n][at : at + AT_ONCE] for n in network.inputs if n in given}
            )
            for at in range(0, len(names), AT_ONCE)
        ]
        features = np.concatenate(parts)
        if features.shape[1] != dim:
            raise InputError(
                f"{path}: its features have {features.shape[1]} numbers, those of images {dim}; "
                "expected both towers of one model"
            )
        return features

    def _tokens(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Tokens (k, context) of texts, and which of them are not padding."""
        with needing("A text tower"):
            import tokenizers
        tokenizer = tokenizers.Tokenizer.from_file(str(self._file("tokenizer.json")))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        context, padding = self._context(), self._padding(tokenizer)
        tokens = np.full((len(texts), context), padding, np.int64)
        there = np.zeros((len(texts), context), np.int64)
        for row, found in enumerate(tokenizer.encode_batch(list(texts))):
            if len(found.ids) > context:
                raise InputError(
                    f"{texts[row]!r} makes {len(found.ids)} tokens; expected at most {context}, "
                    f"the context of {self.layout.text}; give the class another name"
                )
            tokens[row, : len(found.ids)] = found.ids
            there[row, : len(found.ids)] = 1
        return tokens, there

    def _context(self) -> int:
        config = read_settings(self._file("config.json"))
        told = (config.get("text_config") or {}).get("max_position_embeddings")
        kind = str(config.get("model_type"))
        if told is None and kind not in CONTEXT:
            raise InputError(f"{self._file('config.json')}: it does not say how long texts may be")
        return int(told or CONTEXT[kind])

    def _padding(self, tokenizer: Any) -> int:
        path = self._file("tokenizer_config.json")
        token = read_settings(path).get("pad_token")
        text = token.get("content") if isinstance(token, dict) else token
        number = tokenizer.token_to_id(str(text))
        if number is None:
            raise InputError(f"{path}: its pad_token {text!r} is not in the vocabulary")
        return int(number)

    def _file(self, name: str) -> Path:
        path = self.layout.setting(name)
        if path is None:
            raise InputError(
                f"{self.layout.text}: {name} is missing, which its text tower needs; copy it from "
                "where the model comes from, or remove the text tower"
            )
        return path
