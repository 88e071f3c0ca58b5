"""The data sets of experiments: where each is found, how it is loaded, and its fingerprint.

Files are searched in the folder named by the environment variable FRUGALVAE_DATA (default:
``data``) and in its subfolders ``features`` and ``images``. Any other data set can be given as
``--data NAME=FILE``.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from frugalvae.errors import InputError, suggestion
from frugalvae.images.feature_file import Features, load_features
from frugalvae_lab.images.dataset import Images, digit_images, load_digits, load_images


class DataSet(NamedTuple):
    """A data set that experiments know by name.

    Its usual name; the frozen encoder that made the features, ``None`` for images; the name of its
    file in the data folder, which may have wildcards; and where the images come from.
    """

    title: str
    backbone: str | None
    file: str
    source: str


LITE0, B32 = "EfficientNet-Lite0", "CLIP ViT-B/32"
CUB = "https://www.vision.caltech.edu/datasets/cub_200_2011/"
CARS = "https://huggingface.co/datasets/tanganke/stanford_cars"
UCF = "https://www.crcv.ucf.edu/data/UCF101.php"
AIRCRAFT = "https://www.robots.ox.ac.uk/~vgg/data/fgvc-aircraft/"
CIFAR = "https://www.cs.toronto.edu/~kriz/cifar.html"
OMNIGLOT = "https://github.com/brendenlake/omniglot"
SHIPPED = "comes with scikit-learn"

CATALOGUE = {
    "cub200": DataSet("CUB-200", LITE0, "cub200-efficientnet_lite0.npz", CUB),
    "cars196": DataSet("Cars-196", B32, "cars196-clip_vit_b32.npz", CARS),
    "ucf101": DataSet("UCF-101", B32, "ucf101-clip_vit_b32.npz", UCF),
    "aircraft100": DataSet("Aircraft-100", B32, "aircraft100-clip_vit_b32.npz", AIRCRAFT),
    "cifar100": DataSet("CIFAR-100", LITE0, "cifar100-efficientnet_lite0.npz", CIFAR),
    "cifar100-images": DataSet("CIFAR-100", None, "cifar-100-python.tar.gz", CIFAR),
    "omniglot": DataSet("Omniglot", None, "omniglot_small*.zip", OMNIGLOT),
    "digits": DataSet("Digits", "8 x 8 pixels", "", SHIPPED),
    "digit-images": DataSet("Digits", None, "", SHIPPED),
}

#: Data sets that need no file.
BUNDLED: dict[str, Callable[[], Features | Images]] = {
    "digits": load_digits,
    "digit-images": digit_images,
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


@dataclass(frozen=True, eq=False)
class Source:
    """A data set that was found and loaded.

    Attributes
    ----------
    name, title, backbone
        Its name in commands, its usual name, and the encoder of its features (``None`` for
        images).
    path
        Its file; ``None`` for bundled data.
    data
        Features, or images.
    fingerprint
        A hash of all arrays, so that another encoder or split counts as another data set.
    """

    name: str
    title: str
    backbone: str | None
    path: str | None
    data: Features | Images
    fingerprint: str

    def to_json(self) -> dict[str, Any]:
        """What reports need to know."""
        x = self.data.x_train
        return {
            "title": self.title,
            "backbone": self.backbone,
            "file": self.path and Path(self.path).name,
            "fingerprint": self.fingerprint,
            "classes": len(self.data.classes),
            "train": len(x),
            "test": len(self.data.x_test),
            "shape": list(x.shape[1:]),
            "text": getattr(self.data, "text", None) is not None,
        }


def find_data(
    names: Sequence[str], given: Mapping[str, str], *, image_size: int = 32
) -> tuple[dict[str, Source], dict[str, str]]:
    """Data sets by name, and the reason for each one that is missing.

    Parameters
    ----------
    names
        Which data sets to find.
    given
        Files by name, from the command line; others are searched in the data folder.
    """
    found, absent = {}, {}
    for name in names:
        parts, known = name.split("+"), CATALOGUE.get(name)
        if len(parts) > 1 and name not in given:
            several, missing = find_data(parts, given, image_size=image_size)
            if missing:
                absent[name] = "; ".join(missing.values())
            else:
                found[name] = join(name, list(several.values()))
            continue
        if name in BUNDLED and name not in given:
            found[name] = make_source(name, None, BUNDLED[name]())
            continue
        paths = in_data_folder(known.file) if known and known.file else []
        if given.get(name):  # a file or a folder, or several separated by commas
            path = Path(given[name])
            one = path.suffix == ".npz" or path.exists()  # the name may have a comma
            paths = [path] if one else [Path(part) for part in given[name].split(",")]
        if paths:
            data = (
                load_features(paths[0])
                if paths[0].suffix == ".npz"
                else load_images(paths, size=image_size)
            )
            found[name] = make_source(name, ",".join(map(str, paths)), data)
        elif known:
            absent[name] = (
                f"{data_folder() / known.file} does not exist; get {known.title} from "
                f"{known.source}, and set FRUGALVAE_DATA to the folder of its file or give --data "
                f"{name}=FILE"
            )
        else:
            absent[name] = (
                f"no file was given for it.{suggestion(name, CATALOGUE)} Give --data {name}=FILE"
            )
    return found, absent


def make_source(name: str, path: str | None, data: Features | Images) -> Source:
    """A loaded data set with its title, encoder and fingerprint."""
    known = CATALOGUE.get(name)
    features = isinstance(data, Features)
    backbone = (known.backbone if known else "features as given") if features else None
    return Source(name, known.title if known else name, backbone, path, data, fingerprint(data))


def join(name: str, sources: Sequence[Source]) -> Source:
    """Several data sets as one: each label has the name of its data set before it."""
    shapes = {source.name: source.data.x_train.shape[1:] for source in sources}
    features = all(isinstance(source.data, Features) for source in sources)
    if not features or len(set(shapes.values())) > 1:
        raise InputError(
            f"{name}: expected features of one width, got shapes {shapes}; join data sets of "
            "one encoder"
        )
    arrays: dict[str, Any] = {
        array: np.concatenate([getattr(source.data, array) for source in sources])
        for array in ("x_train", "x_test")
    }
    for array in ("y_train", "y_test"):
        arrays[array] = np.array(
            [f"{s.name}/{label}" for s in sources for label in getattr(s.data, array)]
        )
    title = " + ".join(source.title for source in sources)
    backbones = dict.fromkeys(source.backbone for source in sources)
    backbone = ", ".join(filter(None, backbones))
    data = Features(name, **arrays)
    return Source(name, title, backbone, None, data, fingerprint(data))


def parse_data(entries: Sequence[str]) -> dict[str, str]:
    """Parse ``NAME=FILE``, or just a known name, or several joined by ``+``.

    >>> parse_data(["birds=birds.npz", "digits"])
    {'birds': 'birds.npz', 'digits': ''}
    """
    found: dict[str, str] = {}
    for entry in entries:
        name, _, path = entry.partition("=")
        known = set(name.split("+")) <= CATALOGUE.keys()
        if not re.fullmatch(r"[\w.+-]+", name) or (not path and not known):
            raise InputError(
                f"--data {entry}: expected NAME=FILE, or one of {', '.join(CATALOGUE)}."
                f"{suggestion(name, CATALOGUE)}"
            )
        if name in found:
            raise InputError(f"--data {name} is given twice; give every data set its own name")
        found[name] = path
    return found


def fingerprint(data: Features | Images) -> str:
    """A hash of all samples and labels.

    >>> fingerprint(load_digits())[:8] == fingerprint(load_digits())[:8]
    True
    """
    hasher = hashlib.sha256()
    for array in (data.x_train, data.y_train, data.x_test, data.y_test):
        array = np.ascontiguousarray(array)
        if array.dtype.kind in "iu" and array.ndim == 1:  # widths do not matter
            array = array.astype(np.int64)
        hasher.update(f"{array.dtype.str}{array.shape}".encode())
        hasher.update(array.tobytes())
    return hasher.hexdigest()[:16]
