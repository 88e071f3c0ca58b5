"""CLIP's frozen text tower, for learned prompts.

The tower is causal: a position depends on itself and earlier positions only. That saves work
in three places. The feature is read at the end-of-text token, so nothing after it matters, and
prompts end there: at about 8 positions instead of 77. The first position is the same
start-of-text token in every prompt, so it is computed once. In the last layer, only the
end-of-text position is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from frugalvae.encoders.defaults import sentence
from frugalvae.encoders.hub import pretrained
from frugalvae.errors import InputError, check_choice

Precision = Literal["float32", "bfloat16"]
START = 1  # position at which prompts start, after the start-of-text token


class TextTower:
    """Turns prompts, given as embeddings of their tokens, into text features.

    Parameters
    ----------
    model
        A ``CLIPTextModelWithProjection`` or ``CLIPModel`` of ``transformers``.
    tokenizer
        Its tokenizer.
    scale
        CLIP's factor on cosine similarities: one over the temperature of Eq. 3.
    name
        The folder or the name on the hub.
    precision
        ``"bfloat16"`` is twice as fast on machines with instructions for it, and much slower
        on others.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        scale: float,
        name: str,
        precision: Precision = "float32",
    ) -> None:
        check_choice("precision", precision, ("float32", "bfloat16"))
        self.name, self.scale, self.tokenizer = name, scale, tokenizer
        tower = model.text_model
        self.dtype = getattr(torch, precision)
        parts = nn.ModuleList([tower, model.text_projection])
        parts.requires_grad_(False).eval().to(self.dtype)
        self.tokens: Tensor = tower.embeddings.token_embedding.weight  # (vocabulary, width)
        self.positions: Tensor = tower.embeddings.position_embedding.weight  # (context, width)
        self.layers: list[Any] = list(tower.encoder.layers)
        self.norm, self.projection = tower.final_layer_norm, model.text_projection
        self._parts = parts
        self._start: list[tuple[Tensor, Tensor]] | None = None

    @property
    def width(self) -> int:
        """Length of a token embedding."""
        return self.tokens.shape[1]

    @property
    def dim(self) -> int:
        """Feature dimension."""
        return int(self.projection.weight.shape[0])

    @property
    def context(self) -> int:
        """The most positions of a prompt, start and end tokens included."""
        return len(self.positions)

    def __deepcopy__(self, memo: dict[int, Any]) -> TextTower:
        """Itself: it never changes."""
        return self

    def to(self, device: torch.device) -> TextTower:
        """Move to a device."""
        if self.tokens.device != device:
            self._parts.to(device)
            self.tokens, self.positions = (w.to(device) for w in (self.tokens, self.positions))
            self._start = None
        return self

    def tokenise(self, text: str, room: int = 0) -> list[int]:
        """Tokens of a text and the end-of-text token; raises if they do not fit.

        ``room`` positions are left for learned tokens.
        """
        found = self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        most = self.context - 2 - room
        if not found or len(found) > most:
            raise InputError(
                f"{text!r} makes {len(found)} tokens; expected 1 to {most}, the context of "
                f"{self.name} less its marks and {room} learned tokens; give the class another name"
            )
        return [*found, int(self.tokenizer.eos_token_id)]

    def embed(self, tokens: Sequence[int]) -> Tensor:
        """Embeddings (length, width) of tokens."""
        return self.tokens[list(tokens)].float()

    def encode(self, prompts: Tensor) -> Tensor:
        """Text features (k, dim) of prompts (k, length, width).

        A prompt is everything after the start-of-text token, up to the end-of-text token.
        """
        length = prompts.shape[1]
        x = prompts.to(self.dtype) + self.positions[START : START + length]
        seen = torch.ones(length, 1 + length, dtype=torch.bool, device=x.device).tril(1)
        for layer, start in zip(self.layers, self._start_of_text(), strict=True):
            last = layer is self.layers[-1]
            x = _block(layer, x, start, x[:, -1:] if last else x, None if last else seen)
        features: Tensor = self.projection(self.norm(x[:, -1]))
        return features.float()

    @torch.no_grad()
    def describe(self, names: Sequence[str]) -> Tensor:
        """Text features (k, dim) of class names in CLIP's usual sentence."""
        texts = [self.tokenise(sentence(name)) for name in names]
        features = torch.empty(len(texts), self.dim, device=self.tokens.device)
        for rows in groups([len(text) for text in texts], 64):
            prompts = torch.stack([self.embed(texts[row]) for row in rows])
            features[rows] = self.encode(prompts)
        return features

    @torch.no_grad()
    def _start_of_text(self) -> list[tuple[Tensor, Tensor]]:
        """Keys and values (1, heads, 1, width per head) of the first position in each layer."""
        if self._start is None:
            x = (self.tokens[self.tokenizer.bos_token_id] + self.positions[0]).view(1, 1, -1)
            self._start = []
            for layer in self.layers:
                self._start.append(_keys_and_values(layer, layer.layer_norm1(x)))
                x = _block(layer, x, None, x, None)
        return self._start


def _block(
    layer: Any, x: Tensor, start: tuple[Tensor, Tensor] | None, outputs: Tensor, seen: Tensor | None
) -> Tensor:
    """Output of one layer at the positions of ``outputs``: all of ``x``, or its last."""
    attention, normed = layer.self_attn, layer.layer_norm1(x)
    query = _by_head(layer, attention.q_proj(normed[:, -outputs.shape[1] :]))
    keys, values = _keys_and_values(layer, normed)
    if start is not None:
        keys, values = (
            torch.cat([first.expand(len(x), -1, -1, -1), rest], dim=2)
            for first, rest in zip(start, (keys, values), strict=True)
        )
    mixed = scaled_dot_product_attention(query, keys, values, attn_mask=seen)
    outputs = outputs + attention.out_proj(mixed.transpose(1, 2).flatten(2))
    return outputs + layer.mlp(layer.layer_norm2(outputs))


def _keys_and_values(layer: Any, normed: Tensor) -> tuple[Tensor, Tensor]:
    attention = layer.self_attn
    return _by_head(layer, attention.k_proj(normed)), _by_head(layer, attention.v_proj(normed))


def _by_head(layer: Any, x: Tensor) -> Tensor:
    """From (k, length, width) to (k, heads, length, width per head)."""
    count, length, width = x.shape
    heads = layer.self_attn.num_heads
    return x.view(count, length, heads, width // heads).transpose(1, 2)


def groups(lengths: Sequence[int], most: int) -> list[list[int]]:
    """Rows grouped by length, at most ``most`` per group: no prompt needs padding.

    >>> groups([2, 3, 2, 2], most=2)
    [[0, 2], [3], [1]]
    """
    same = [[row for row, n in enumerate(lengths) if n == length] for length in sorted({*lengths})]
    return [rows[at : at + most] for rows in same for at in range(0, len(rows), most)]


@cache
def load_text_tower(model: str, precision: Precision = "float32") -> TextTower:
    """The text tower of a CLIP in ``transformers`` format, from a folder or the hub.

    It is loaded once, however many heads use it.
    """
    kind = pretrained("AutoConfig", model).model_type
    if kind != "clip":
        raise InputError(
            f"{model} is a model of type {kind!r}; expected 'clip', with an image and a text tower"
        )
    whole, tokenizer = pretrained("CLIPModel", model), pretrained("CLIPTokenizer", model)
    rows = len(whole.text_model.embeddings.token_embedding.weight)
    if len(tokenizer) != rows:  # without its files, a tokenizer of three tokens is made up
        raise InputError(
            f"{model}: its tokenizer knows {len(tokenizer)} tokens, its text tower {rows}; "
            "expected the tokenizer's files (tokenizer.json) next to the model's"
        )
    scale = float(whole.logit_scale.detach().exp())
    return TextTower(whole, tokenizer, scale=scale, name=model, precision=precision)
