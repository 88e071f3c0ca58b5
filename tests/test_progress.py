from __future__ import annotations

import threading

import pytest

from frugalvae.console import listening, track


class Heard(list[tuple[str, int, int]]):
    """A listener that remembers."""

    def __call__(self, what: str, done: int, total: int) -> None:
        self.append((what, done, total))


def test_items_come_unchanged_with_and_without_a_listener() -> None:
    assert list(track("abc", "spelling")) == ["a", "b", "c"]
    with listening(Heard()):
        assert list(track("abc", "spelling")) == ["a", "b", "c"]


def test_listener_hears_of_a_step_only_once_it_is_done() -> None:
    heard = Heard()
    with listening(heard):
        steps = track("ab", "spelling")
        next(steps)
        assert heard == [("spelling", 0, 2)]
        next(steps)
        assert heard == [("spelling", 0, 2), ("spelling", 1, 2)]
        assert next(steps, None) is None
    assert heard[2:] == [("spelling", 2, 2)]


def test_nothing_to_do_is_told_once() -> None:
    heard = Heard()
    with listening(heard):
        assert list(track([], "resting")) == []
    assert heard == [("resting", 0, 0)]


def test_loop_left_early_never_claims_to_be_complete() -> None:
    heard = Heard()
    with listening(heard):
        for item in track("abc", "spelling"):
            if item == "b":
                break
    assert heard == [("spelling", 0, 3), ("spelling", 1, 3)]


def test_nobody_is_told_outside_the_block() -> None:
    heard = Heard()
    with listening(heard):
        pass
    list(track("ab", "spelling"))
    assert heard == []


def test_inner_listener_takes_over_and_gives_back() -> None:
    outer, inner = Heard(), Heard()
    with listening(outer):
        with listening(inner):
            list(track([], "within"))
        list(track([], "after"))
    assert inner == [("within", 0, 0)]
    assert outer == [("after", 0, 0)]


def test_listener_is_gone_after_an_error() -> None:
    heard = Heard()
    with pytest.raises(ZeroDivisionError), listening(heard):
        raise ZeroDivisionError
    list(track("ab", "spelling"))
    assert heard == []


def test_loops_within_loops_are_told_apart_by_name() -> None:
    heard = Heard()
    with listening(heard):
        for _ in track("a", "tasks"):
            list(track("b", "epochs"))
    assert heard == [("tasks", 0, 1), ("epochs", 0, 1), ("epochs", 1, 1), ("tasks", 1, 1)]


def test_listener_does_not_hear_other_threads() -> None:
    heard = Heard()
    with listening(heard):
        thread = threading.Thread(target=lambda: list(track("ab", "elsewhere")))
        thread.start()
        thread.join()
    assert heard == []


def test_listener_that_fails_stops_the_loop() -> None:
    """That is how a user's interrupt gets out."""

    def interrupt(what: str, done: int, total: int) -> None:
        if done == 1:
            raise KeyboardInterrupt

    with listening(interrupt):
        steps = track("abc", "spelling")
        assert next(steps) == "a"
        with pytest.raises(KeyboardInterrupt):
            next(steps)
