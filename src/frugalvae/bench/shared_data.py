"""Data that processes share: arrays in files, which all of them map into memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from frugalvae.images.dataset import Images
from frugalvae.images.feature_file import Features

ARRAYS = ("x_train", "y_train", "x_test", "y_test")


def save_shared(folder: Path, data: Features | Images) -> None:
    """Write each array to a file of its own, which can be mapped instead of read."""
    folder.mkdir()
    for name in ARRAYS:
        np.save(folder / f"{name}.npy", getattr(data, name))
    text = getattr(data, "text", None)
    if text is not None:
        np.save(folder / "text_keys.npy", np.array(list(text)))
        np.save(folder / "text.npy", np.stack(list(text.values())))
    (folder / type(data).__name__).touch()


def load_shared(folder: Path) -> Features | Images:
    """Map what :func:`save_shared` wrote: all processes use the same memory."""
    arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in ARRAYS}
    if (folder / "Images").exists():
        return Images(folder.name, **arrays)
    text = None
    if (folder / "text.npy").exists():
        keys = np.load(folder / "text_keys.npy").tolist()
        text = dict(zip(keys, np.load(folder / "text.npy"), strict=True))
    return Features(folder.name, **arrays, text=text)
