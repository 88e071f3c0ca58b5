"""Photographs drawn from a data set's folders, for measurements."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.benchmarks import draw


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Two classes of five photographs to train and three to test, as Fruits-360 has them."""
    for part, count in (("Training", 5), ("Test", 3)):
        for name in ("apple", "pear"):
            folder = tmp_path / "source" / part / name
            folder.mkdir(parents=True)
            for number in range(count):
                (folder / f"{number}.jpg").write_text(f"{part} {name} {number}")
    (tmp_path / "source" / "papers").mkdir()
    return tmp_path / "source"


def drawn(monkeypatch: pytest.MonkeyPatch, *arguments: Path | str) -> None:
    monkeypatch.setattr("sys.argv", ["draw", *map(str, arguments)])
    draw.main()


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_as_many_as_asked_for_are_drawn_and_always_the_same_ones(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("once", "again"):
        drawn(monkeypatch, source, tmp_path / name, "--train", "3", "--test", "2")
    once = files(tmp_path / "once")
    assert once == files(tmp_path / "again")
    for part, count in (("train", 3), ("test", 2)):
        for fruit in ("apple", "pear"):
            assert sum(path.startswith(f"{part}/{fruit}/") for path in once) == count
    for path in once:
        split, fruit, number = path.removesuffix(".jpg").split("/")
        part = {"train": "Training", "test": "Test"}[split]
        assert (tmp_path / "once" / path).read_text() == f"{part} {fruit} {number}"


def test_without_numbers_both_parts_are_joined(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn(monkeypatch, source, tmp_path / "joined")
    expected = {f"{fruit}/train-{n}.jpg" for fruit in ("apple", "pear") for n in range(5)}
    expected |= {f"{fruit}/test-{n}.jpg" for fruit in ("apple", "pear") for n in range(3)}
    assert files(tmp_path / "joined") == expected


def test_a_class_may_be_deeper(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in ("Training", "Test"):
        (source / part / "fruit").mkdir()
        (source / part / "apple").rename(source / part / "fruit" / "apple")
    drawn(monkeypatch, source, tmp_path / "drawn", "--train", "1", "--test", "1")
    folders = {path.rsplit("/", 1)[0] for path in files(tmp_path / "drawn")}
    assert folders == {"train/apple", "train/pear", "test/apple", "test/pear"}


def test_nothing_is_overwritten_and_half_a_request_is_refused(
    source: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for arguments, message in (
        ((source, source), "exists already; name another folder"),
        ((source, tmp_path / "new", "--train", "3"), "give both --train and --test, or neither"),
        ((source / "Test", tmp_path / "new"), "has no folders train/CLASS and test/CLASS"),
    ):
        with pytest.raises(SystemExit):
            drawn(monkeypatch, *arguments)
        assert message in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
