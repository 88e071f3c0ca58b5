"""Rules that every frozen encoder keeps."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from frugalvae.encoders.defaults import drawn_image
from frugalvae.testing.rules import Rule, check, require

if TYPE_CHECKING:
    from frugalvae.parts.protocols import Encoder


def check_encoder(make: Callable[[], Encoder]) -> None:
    """Check a frozen encoder."""
    check(make, ENCODER_CHECKS)


def features_are_as_wide_as_it_says(make: Callable[[], Encoder]) -> None:
    """Features are (n, dim), float32 and finite, of images of any shape."""
    encoder = make()
    images = [drawn_image(), drawn_image(40).resize((90, 40)), Image.new("RGB", (7, 31))]
    for image in images:
        prepared = encoder.prepare(image)
        require(
            prepared.ndim == 3 and len(prepared) == 3 and prepared.dtype == np.float32,
            f"prepare() gives {prepared.dtype} of shape {prepared.shape}; expected float32, "
            "(3, height, width)",
        )
        feature = encoder.encode(prepared[None])
        require(
            feature.shape == (1, encoder.dim) and feature.dtype == np.float32,
            f"encode() gives {feature.dtype} of shape {feature.shape}; expected float32, "
            f"(1, {encoder.dim})",
        )
        require(np.isfinite(feature).all(), "features are not finite")


def an_image_does_not_depend_on_the_batch(make: Callable[[], Encoder]) -> None:
    """Nor on what was encoded before."""
    encoder = make()
    one, other = (
        encoder.prepare(image) for image in (drawn_image(), Image.new("RGB", (256, 256), "red"))
    )
    alone = [encoder.encode(image[None]) for image in (one, other)]
    together = encoder.encode(np.stack([one, other]))
    require(
        np.allclose(np.concatenate(alone), together, rtol=1e-3, atol=1e-4),
        "an image has another feature in a batch than by itself",
    )
    require(
        not np.allclose(alone[0], alone[1], rtol=1e-6), "two different images have the same feature"
    )


def tells_what_it_is(make: Callable[[], Encoder]) -> None:
    """The identity is JSON, always the same, and has what files are compared by."""
    encoder, twin = make(), make()
    told = json.loads(json.dumps(encoder.identity))
    missing = {"encoder", "preprocessing", "weights"} - told.keys()
    require(not missing, f"identity has no {', '.join(sorted(missing))}")
    require(told == json.loads(json.dumps(twin.identity)), "identity changes from one to the next")


def goes_to_another_process(make: Callable[[], Encoder]) -> None:
    """It can be pickled, and moved to a device."""
    encoder = make()
    prepared = encoder.prepare(drawn_image())[None]
    before = encoder.encode(prepared)
    after = pickle.loads(pickle.dumps(encoder.to("cpu"))).encode(prepared)
    require(np.allclose(before, after, rtol=1e-3, atol=1e-4), "a pickled copy gives other features")


def text_features_are_as_wide_as_images(make: Callable[[], Encoder]) -> None:
    """Or there are none."""
    encoder = make()
    text = encoder.text_features(["cat", "emu"])
    if text is not None:
        expected = (2, encoder.dim)
        require(text.shape == expected, f"text_features() of two names has shape {text.shape}")


ENCODER_CHECKS: tuple[Rule, ...] = (
    features_are_as_wide_as_it_says,
    an_image_does_not_depend_on_the_batch,
    tells_what_it_is,
    goes_to_another_process,
    text_features_are_as_wide_as_images,
)
