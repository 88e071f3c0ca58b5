"""Data sets that experiments know by name, where to find them and where to get them.

Files are searched in the folder named by the environment variable FRUGALVAE_DATA (default:
``data``) and in its subfolders ``features`` and ``images``. Any other data set can be given as
``--data NAME=FILE``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class DataSet:
    """A data set that experiments know by name.

    Attributes
    ----------
    title
        The usual name.
    backbone
        The frozen encoder that made the features; ``None`` for images.
    file
        The name of its file in the data folder; may have wildcards.
    source
        Where the images come from.
    """

    title: str
    backbone: str | None
    file: str
    source: str


LITE0, B32 = "EfficientNet-Lite0", "CLIP ViT-B/32"

CATALOGUE = {
    "cub200": DataSet(
        "CUB-200",
        LITE0,
        "cub200-efficientnet_lite0.npz",
        "https://www.vision.caltech.edu/datasets/cub_200_2011/",
    ),
    "cars196": DataSet(
        "Cars-196",
        B32,
        "cars196-clip_vit_b32.npz",
        "https://huggingface.co/datasets/tanganke/stanford_cars",
    ),
    "ucf101": DataSet(
        "UCF-101", B32, "ucf101-clip_vit_b32.npz", "https://www.crcv.ucf.edu/data/UCF101.php"
    ),
    "aircraft100": DataSet(
        "Aircraft-100",
        B32,
        "aircraft100-clip_vit_b32.npz",
        "https://www.robots.ox.ac.uk/~vgg/data/fgvc-aircraft/",
    ),
    "cifar100": DataSet(
        "CIFAR-100",
        LITE0,
        "cifar100-efficientnet_lite0.npz",
        "https://www.cs.toronto.edu/~kriz/cifar.html",
    ),
    "cifar100-images": DataSet(
        "CIFAR-100",
        None,
        "cifar-100-python.tar.gz",
        "https://www.cs.toronto.edu/~kriz/cifar.html",
    ),
    "omniglot": DataSet(
        "Omniglot",
        None,
        "omniglot_small*.zip",
        "https://github.com/brendenlake/omniglot",
    ),
    "digits": DataSet("Digits", "8 x 8 pixels", "", "comes with scikit-learn"),
    "digit-images": DataSet("Digits", None, "", "comes with scikit-learn"),
}


def data_folder() -> Path:
    """The folder that is searched for feature files and image archives."""
    return Path(os.environ.get("FRUGALVAE_DATA", "data"))


def in_data_folder(pattern: str) -> list[Path]:
    """Files that match a pattern in the data folder, or else in ``features`` or ``images``.

    >>> in_data_folder("there is no such file")
    []
    """
    root = data_folder()
    for folder in (root, root / "features", root / "images"):
        found = sorted(folder.glob(pattern))
        if found:
            return found
    return []
