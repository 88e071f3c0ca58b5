"""The tray: bounded in number, in bytes and in time; the oldest go first."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the extra 'serve' is not installed")

from frugalvae.server.looking import Seen
from frugalvae.server.refusals import RefusedError
from frugalvae.server.settings import Limits
from frugalvae.server.tray import OVERHEAD, Tray


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def seen(small: int, features: int = 10) -> Seen:
    """A picture whose small picture has so many bytes."""
    return Seen(np.zeros(features, np.float32), b"1", "colours", b"x" * small)


def add(tray: Tray, *pictures: Seen) -> list[str]:
    return [tray.add(one, {"label": None}) for one in pictures]


def shown(tray: Tray) -> list[str]:
    return [one.id for one in tray.shown()]


def test_questions_take_what_their_picture_and_features_take() -> None:
    tray = Tray(Limits())
    add(tray, seen(100), seen(0))
    assert tray.bytes == (100 + 40 + OVERHEAD) + (40 + OVERHEAD)
    assert [one.bytes for one in tray.shown()] == [100 + 40 + OVERHEAD]


def test_bytes_are_bounded_and_the_oldest_go_first() -> None:
    one = 1000 + 40 + OVERHEAD
    tray = Tray(Limits(remembered=3 * one))
    ids = add(tray, *[seen(1000) for _ in range(3)])
    assert shown(tray) == ids[::-1]
    assert tray.bytes == 3 * one
    ids += add(tray, seen(1000))
    assert shown(tray) == ids[:0:-1]
    large = add(tray, seen(1000 + one))  # takes the place of two
    assert shown(tray) == large + ids[3:]
    assert tray.bytes == 3 * one
    larger = add(tray, seen(1001 + one))
    assert shown(tray) == larger
    add(tray, seen(3 * one))
    assert shown(tray) == []


def test_those_that_wait_to_be_taught_are_bounded_for_themselves() -> None:
    one = 4000 + OVERHEAD
    tray = Tray(Limits(remembered=2 * one))
    quiet = add(tray, *[seen(0, 1000) for _ in range(2)])
    asked = add(tray, seen(4000 - 40), seen(4000 - 40))
    assert tray.bytes == 4 * one
    assert [found.id for found in tray.get([*quiet, *asked])] == [*quiet, *asked]
    add(tray, seen(0, 1000))
    with pytest.raises(RefusedError):
        tray.get(quiet[:1])
    assert tray.get([quiet[1], *asked])


def test_numbers_are_bounded() -> None:
    tray = Tray(Limits(recent=2, quiet=1))
    ids = add(tray, *[seen(1) for _ in range(3)])
    assert shown(tray) == [ids[2], ids[1]]
    first, second = add(tray, seen(0), seen(0))
    assert [found.id for found in tray.get([second, second])] == [second]
    with pytest.raises(RefusedError) as refused:
        tray.get([first, second, ids[0]])
    assert (refused.value.status, refused.value.more) == (410, {"gone": [first, ids[0]]})
    assert refused.value.why == (
        "2 of 3 pictures are no longer remembered: the last 2 are, for 60 minutes; send them again"
    )


def test_time_is_bounded() -> None:
    clock = Clock()
    tray = Tray(Limits(seconds_remembered=60), clock)
    [first] = add(tray, seen(1))
    clock.now = 30
    [second] = add(tray, seen(1))
    clock.now = 60
    assert shown(tray) == [second, first]
    assert [tray.left(one) for one in tray.shown()] == [30, 0]
    clock.now = 60.5
    assert shown(tray) == [second]
    clock.now = 91
    with pytest.raises(RefusedError):
        tray.get([second])


def test_some_or_all_are_removed() -> None:
    tray = Tray(Limits())
    ids = add(tray, seen(1), seen(1), seen(0), seen(1))
    assert tray.remove([ids[0], ids[2], "nothing"]) == 2
    assert shown(tray) == [ids[3], ids[1]]
    [quiet] = add(tray, seen(0))
    assert tray.remove() == 2
    assert (shown(tray), [one.id for one in tray.get([quiet])]) == ([], [quiet])
