"""Names as knowledge: what an encoder that reads knows of a class before its first sample.

The cosine between an image's feature and the feature of a class's name is a score (CLIP's
zero-shot classifier). It is added to the logits of what was taught; the fewer samples a class
has, the more it counts. A name such as "IMG_01" says nothing:

- A class whose samples do not fit its name is scored by what was taught alone. It gets what
  names add to the other classes on average, so that it neither gains nor loses by theirs.
- Whether names help at all is seen on taught samples, each held out.

A class may be known by its name alone. Names decide how probable these classes are beside all
that have samples; among those, what was taught decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from frugalvae.maths.arrays import Array, logsumexp, unit

SCALE = 100.0  # from cosines to logits, as CLIP was trained
LAST, FIRST = 0.25, 3.0  # the weight of names is LAST + FIRST / n
MULTIPLES = np.array([0.0, 0.5, 1.0, 2.0])  # of that weight, that are tried
USUAL = 2  # the multiple without evidence
TIE = 0.25  # of a sample: what the usual multiple is ahead of others
DOUBT = 0.25  # of the root of the number of samples: what names must bring
FIT = 3.0  # how well a meaningful name fits its class, where chance has a deviation of 1
MEANT, WORTH = 0.9, 2.0  # the share of names that mean something, and the names this guess is worth
MOST_DOUBT = 100  # odds that a name of a class of many samples must have
STEPS = 20  # of the fixed point of that share


@dataclass(frozen=True)
class Names:
    """What the names of k classes say; the first t have samples, the others a name alone.

    Attributes
    ----------
    vectors
        Text features, of unit length, around their mean, (k, d).
    weights
        How much names count beside what was taught, (t,).
    meaningful
        Which classes' samples fit their name, (t,).

    Examples
    --------
    >>> text = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    >>> names = Names.of(text, means=text[:2], counts=np.array([5, 5]))
    >>> taught = np.array([[0.0, 0.0]])  # what was taught does not tell
    >>> int(names.logits(np.array([[-0.9, 0.1]]), taught).argmax())  # the third has no samples
    2
    """

    vectors: Array
    weights: Array
    meaningful: Array

    @classmethod
    def of(cls, text: Array, means: Array, counts: Array) -> Names:
        """Of text features (k, d), with means (t, d) and counts (t,) of the first classes.

        A row of zeros says that a class has no text feature.
        """
        vectors, named = unit(text.astype(np.float64)), np.array([row.any() for row in text], bool)
        means = means.reshape(len(counts), vectors.shape[1])  # of no class, too
        sure, centre = _read(vectors, named, unit(means.astype(np.float64)))
        doubt = np.minimum(counts**2, MOST_DOUBT)  # a wrong name costs more beside many samples
        meaningful = sure > doubt * (1 - sure)
        return cls(vectors - centre, LAST + FIRST / counts, meaningful)

    def scores(self, features: Array) -> Array:
        """CLIP's zero-shot logits (n, k) of features (n, d).

        Their mean over meaningful names is 0: no class gains by the weight of its name alone.
        """
        return SCALE * unit(features.astype(np.float64)) @ self.vectors.T

    def logits(self, features: Array, taught: Array, multiple: float = 1.0) -> Array:
        """Logits (n, k) of features (n, d), given those of what was taught, (n, t)."""
        scores, count = self.scores(features), len(self.weights)
        if multiple and count:
            taught = self.added(taught, multiple * self.weights * scores[:, :count])
        if len(self.vectors) == count:
            return taught
        if not count:
            return scores
        as_named = logsumexp(scores[:, :count]) - logsumexp(taught)  # (n,)
        return np.concatenate([taught + as_named[:, None], scores[:, count:]], axis=1)

    def added(self, taught: Array, more: Array) -> Array:
        """What was taught (n, t) with what names add; meaningless ones add the others' average."""
        meant = self.meaningful
        if not meant.any():
            return taught
        with_names = taught + more
        if not meant.all():
            average = logsumexp(with_names[:, meant]) - logsumexp(taught[:, meant])
            with_names[:, ~meant] = taught[:, ~meant] + average[:, None]
        return with_names


def _read(vectors: Array, named: Array, means: Array) -> tuple[Array, Array]:
    """How probable it is that each name means something, (t,), and the mean of those that do, (d,).

    A name (k, d) fits its class as far as the class's mean (t, d) lies in its direction, compared
    with the means of other classes. By chance this is a standard normal. A fixed point: which names
    mean something, how many do, and their mean follow from each other.
    """
    count, means, share = len(means), means - means.sum(axis=0) / max(1, len(means)), MEANT
    own, gram = np.einsum("td,td->t", vectors[:count], means), means.T @ means
    turned = vectors[:count] @ gram  # (t, d)
    squares = np.einsum("td,td->t", turned, vectors[:count])
    weights = named.astype(np.float64)
    for _ in range(STEPS):
        centre = weights @ vectors / max(weights.sum(), 1e-12)  # (d,)
        around = own - means @ centre
        others = squares - 2 * turned @ centre + centre @ gram @ centre - around**2
        fit = around / np.sqrt(np.maximum(others / max(1, count - 1), 1e-24))
        ratio = np.exp(np.clip(FIT * fit - FIT**2 / 2, -50, 50))  # meaningful against chance
        weights[:count] = named[:count] * share * ratio / (share * ratio + 1 - share)
        share = (weights[:count].sum() + MEANT * WORTH) / (count + WORTH)
    return weights[:count], centre


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
        self, taught: Array, names: Names, features: Array, columns: Array
    ) -> NameEvidence:
        """With samples (n, d) whose classes are ``columns`` (n,).

        ``taught`` (n, t) are logits of what was taught without each sample.
        """
        scores, found = names.scores(features)[:, : len(names.weights)], []
        for multiple in MULTIPLES:
            logits = names.added(taught, multiple * names.weights * scores) if multiple else taught
            found.append(float((logits.argmax(axis=1) == columns).sum()))
        return NameEvidence(self.sums + np.array([len(columns), *found], np.float32))

    def __add__(self, other: NameEvidence) -> NameEvidence:
        return NameEvidence(self.sums + other.sums)
