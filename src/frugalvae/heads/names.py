"""Names as knowledge: what an encoder that reads knows of a class before its first sample.

The cosine between an image's feature and the feature of a class's name is a score (CLIP's
zero-shot classifier). It is added to the logits of what was taught. The fewer samples a class
has, the more it counts. Whether names help at all is seen on taught samples, each held out: a
name such as "IMG_01" does not, and is then ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from frugalvae.maths.arrays import Array, unit

SCALE = 100.0  # from cosines to logits, as CLIP was trained
LAST, FIRST = 0.25, 3.0  # the weight of names is LAST + FIRST / n
MULTIPLES = np.array([0.0, 0.5, 1.0, 2.0])  # of that weight, that are tried
USUAL = 2  # the multiple without evidence
TIE = 0.25  # of a sample: what the usual multiple is ahead of others
DOUBT = 0.5  # of the root of the number of samples: what names must bring


def _nothing() -> Array:
    return np.zeros(1 + len(MULTIPLES), np.float32)


@dataclass(frozen=True)
class NameEvidence:
    """How many held-out samples there were, and how many were right with names at each weight.

    >>> NameEvidence(np.array([100, 40, 60, 70, 65], np.float32)).multiple
    1.0
    >>> NameEvidence(np.array([100, 40, 30, 9, 2], np.float32)).multiple
    0.0
    """

    sums: Array = field(default_factory=_nothing)

    @property
    def multiple(self) -> float:
        """The multiple of the usual weight of names that did best; 0 if none did clearly."""
        held, right = float(self.sums[0]), self.sums[1:]
        if not held:
            return float(MULTIPLES[USUAL])
        best = int((right + TIE * (MULTIPLES[USUAL] == MULTIPLES)).argmax())
        clear = right[best] - right[0] > DOUBT * held**0.5
        return float(MULTIPLES[best]) if clear else 0.0

    def with_samples(
        self, taught: Array | None, names: Array, counts: Array, columns: Array
    ) -> NameEvidence:
        """With samples whose classes are ``columns`` (n,).

        ``taught`` (n, k) are logits of what was taught without each sample; ``None`` if their
        classes have no other sample. Then names alone are compared with chance. ``names`` (n, k)
        are those of names, and ``counts`` (k,) the samples of each class.
        """
        rows, found = np.arange(len(columns)), []
        for multiple in MULTIPLES:
            if taught is None:
                right = (names.argmax(axis=1) == columns).sum()
                found.append(float(right) if multiple else len(columns) / names.shape[1])
                continue
            logits = taught + multiple * weight(counts) * names
            fewer = multiple * weight(np.maximum(counts[columns] - 1, 1))
            logits[rows, columns] = taught[rows, columns] + fewer * names[rows, columns]
            found.append(float((logits.argmax(axis=1) == columns).sum()))
        return NameEvidence(self.sums + np.array([len(columns), *found], np.float32))

    def __add__(self, other: NameEvidence) -> NameEvidence:
        return NameEvidence(self.sums + other.sums)


def weight(counts: Array) -> Array:
    """The usual weight of the names of classes of so many samples."""
    weights: Array = LAST + FIRST / counts
    return weights


def name_logits(features: Array, text: Mapping[int, Array], labels: list[int]) -> Array:
    """CLIP's zero-shot logits (n, k) of features (n, d), given the text feature of each class.

    Their mean over classes is 0: then no class gains or loses by the weight of its name alone.
    """
    vectors = unit(np.stack([text[label] for label in labels]).astype(np.float64))
    vectors -= vectors.mean(axis=0)
    logits: Array = SCALE * unit(features.astype(np.float64)) @ vectors.T
    return logits
