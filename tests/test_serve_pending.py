"""Remembered images: bounded in number, in bytes and in time; the oldest go first."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the extra 'serve' is not installed")

from frugalvae.server.guard import RefusedError
from frugalvae.server.pending import OVERHEAD, PendingImages
from frugalvae.server.settings import Limits
from frugalvae.server.workers import EncodedImage


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def image(small: int, features: int = 10) -> EncodedImage:
    """A picture whose thumbnail has so many bytes."""
    return EncodedImage(np.zeros(features, np.float32), b"1", "colours", b"x" * small)


def add(pending: PendingImages, *pictures: EncodedImage) -> list[str]:
    return [pending.add(one, {"label": None}) for one in pictures]


def listed(pending: PendingImages) -> list[str]:
    return [one.id for one in pending.listed()]


def test_questions_take_what_their_picture_and_features_take() -> None:
    pending = PendingImages(Limits())
    add(pending, image(100), image(0))
    assert pending.bytes == (100 + 40 + OVERHEAD) + (40 + OVERHEAD)
    assert [one.bytes for one in pending.listed()] == [100 + 40 + OVERHEAD]


def test_bytes_are_bounded_and_the_oldest_go_first() -> None:
    one = 1000 + 40 + OVERHEAD
    pending = PendingImages(Limits(remembered=3 * one))
    ids = add(pending, *[image(1000) for _ in range(3)])
    assert listed(pending) == ids[::-1]
    assert pending.bytes == 3 * one
    ids += add(pending, image(1000))
    assert listed(pending) == ids[:0:-1]
    large = add(pending, image(1000 + one))  # takes the place of two
    assert listed(pending) == large + ids[3:]
    assert pending.bytes == 3 * one
    larger = add(pending, image(1001 + one))
    assert listed(pending) == larger
    add(pending, image(3 * one))
    assert listed(pending) == []


def test_those_that_wait_to_be_taught_are_bounded_for_themselves() -> None:
    one = 4000 + OVERHEAD
    pending = PendingImages(Limits(remembered=2 * one))
    quiet = add(pending, *[image(0, 1000) for _ in range(2)])
    asked = add(pending, image(4000 - 40), image(4000 - 40))
    assert pending.bytes == 4 * one
    assert [found.id for found in pending.get([*quiet, *asked])] == [*quiet, *asked]
    add(pending, image(0, 1000))
    with pytest.raises(RefusedError):
        pending.get(quiet[:1])
    assert pending.get([quiet[1], *asked])


def test_numbers_are_bounded() -> None:
    pending = PendingImages(Limits(recent=2, quiet=1))
    ids = add(pending, *[image(1) for _ in range(3)])
    assert listed(pending) == [ids[2], ids[1]]
    first, second = add(pending, image(0), image(0))
    assert [found.id for found in pending.get([second, second])] == [second]
    with pytest.raises(RefusedError) as refused:
        pending.get([first, second, ids[0]])
    assert (refused.value.status, refused.value.more) == (410, {"gone": [first, ids[0]]})
    assert refused.value.why == (
        "2 of 3 images are no longer remembered: the last 2 are, for 60 minutes; send them again"
    )


def test_time_is_bounded() -> None:
    clock = Clock()
    pending = PendingImages(Limits(seconds_remembered=60), clock)
    [first] = add(pending, image(1))
    clock.now = 30
    [second] = add(pending, image(1))
    clock.now = 60
    assert listed(pending) == [second, first]
    assert [pending.seconds_left(one) for one in pending.listed()] == [30, 0]
    clock.now = 60.5
    assert listed(pending) == [second]
    clock.now = 91
    with pytest.raises(RefusedError):
        pending.get([second])


def test_some_or_all_are_removed() -> None:
    pending = PendingImages(Limits())
    ids = add(pending, image(1), image(1), image(0), image(1))
    assert pending.remove([ids[0], ids[2], "nothing"]) == 2
    assert listed(pending) == [ids[3], ids[1]]
    [quiet] = add(pending, image(0))
    assert pending.remove() == 2
    assert (listed(pending), [one.id for one in pending.get([quiet])]) == ([], [quiet])
