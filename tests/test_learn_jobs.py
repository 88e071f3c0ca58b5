"""Learning in many processes: the same file, whoever dies; and memory that does not grow."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from frugalvae import FrugalClassifier, encoding
from frugalvae.engines import run_in_process
from frugalvae.model.model import Model, Sums
from frugalvae.samples import Rows, Samples
from frugalvae.storage.model_file import read_file
from tests.colours import Deadly, Held
from tests.test_images import save
from tests.tool import SHADES, Encoders, Tool
from tests.waiting import PATIENCE, descendants, kill_a_run, needs_proc, wait_until

ROOT = Path(__file__).parent.parent
NAMES = ("cat", "dax", "emu")


def photographs(root: Path, count: int = 20) -> Path:
    rng = np.random.default_rng(0)
    for name in NAMES:
        for number in range(count):
            shade = np.clip(np.array(SHADES[name]) + rng.integers(-25, 26, 3), 0, 255)
            save(root / name / f"{number}.png", tuple(shade.tolist()))
    return root


def arrays(file: Path) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in read_file(file).arrays.items()}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of eight images, and parts of four."""
    monkeypatch.setattr(encoding, "LEAST", 8)
    monkeypatch.setattr(encoding, "MOST", 8)
    monkeypatch.setattr(encoding, "PART", 4)


@pytest.fixture
def alone(tool: Tool, small: None) -> dict[str, bytes]:
    """What one process makes of the photographs."""
    tool.file = tool.folder / "alone.frugal"
    tool("learn", photographs(tool.folder / "photos"), "--batch-size", 4)
    found = arrays(tool.file)
    tool.file = tool.folder / "birds.frugal"
    return found


def test_chunks_come_to_what_all_samples_come_to(
    tool: Tool, alone: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "LEAST", 1024)
    monkeypatch.setattr(encoding, "MOST", 1024)
    tool("learn", tool.folder / "photos", "--batch-size", 4)
    one = FrugalClassifier.load(tool.file).model_
    many = FrugalClassifier.load(tool.folder / "alone.frugal").model_
    assert one.n_samples_of_class.tolist() == many.n_samples_of_class.tolist() == [20] * 3
    assert one.n_tasks == many.n_tasks == 1
    assert [event["classes"] for event in one.history] == [e["classes"] for e in many.history]
    for number in one.numbers.tolist():
        np.testing.assert_allclose(
            one.memory.sums_.means[number], many.memory.sums_.means[number], rtol=1e-4
        )  # type: ignore[union-attr]
        assert one.memory.sums_.squares[number] == pytest.approx(
            many.memory.sums_.squares[number], rel=1e-4
        )  # type: ignore[union-attr]
    assert one.digests.keys() == many.digests.keys()
    colours = np.array(list(SHADES.values()), np.float32)
    np.testing.assert_array_equal(one.predict(colours), many.predict(colours))


def test_many_processes_make_the_file_that_one_makes(tool: Tool, alone: dict[str, bytes]) -> None:
    said = tool("learn", tool.folder / "photos", "--batch-size", 4, "--jobs", 2)
    assert "learned 3 classes from 60 images" in said
    assert arrays(tool.file) == alone
    assert tool.beside == ["birds.frugal", "birds.frugal.undo"]
    assert "60 images taught before" in tool("learn", tool.folder / "photos", "--jobs", 2)


def test_archives_are_read_in_many_processes_too(tool: Tool, alone: dict[str, bytes]) -> None:
    packed = tool.folder / "photos.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for path in sorted((tool.folder / "photos").glob("*/*")):
            archive.write(path, path.relative_to(tool.folder))
    tool("learn", packed, "--batch-size", 4, "--jobs", 2)
    assert arrays(tool.file) == alone


@needs_proc
def test_a_worker_is_killed_and_the_file_is_the_same(
    tool: Tool, alone: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(tool.folder / "gate", after=1)
    monkeypatch.setattr("frugalvae.encoders.make_encoder", lambda *_, **__: held)
    killed: list[int] = []

    def kill() -> None:
        parts = tool.folder / "birds.frugal.parts"
        try:  # of two processes, a slow one may hold up all that the other has done
            wait_until(lambda: list(parts.glob("*.npz")))
            running = descendants(os.getpid()).items()
            killed.extend([pid for pid, command in running if "spawn_main" in command][:1])
            os.kill(killed[0], signal.SIGKILL)
        finally:  # nobody waits for ever
            held.gate.unlink()

    threading.Thread(target=kill, daemon=True).start()
    tool("learn", tool.folder / "photos", "--batch-size", 4, "--jobs", 2)
    assert len(killed) == 1
    assert arrays(tool.file) == alone
    assert tool.beside == ["birds.frugal", "birds.frugal.undo"]


def test_images_on_which_every_process_dies_are_given_up(
    tool: Tool, encoders: Encoders, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    photographs(tool.folder / "photos", 6)
    with monkeypatch.context() as patched:
        deadly = Deadly()
        patched.setattr("frugalvae.encoders.make_encoder", lambda *_, **__: deadly)
        error = tool("learn", tool.folder / "photos", "--jobs", 2, code=2)
    assert "a process died 3 times on the same images; it may be out of memory" in error
    assert not tool.file.exists()
    tool("learn", tool.folder / "photos")
    assert tool.classes == list(NAMES)


START = """
import pathlib, sys
from frugalvae import encoders, encoding
from frugalvae.cli.main import main
from tests.colours import Held
if __name__ == "__main__":
    encoding.LEAST = encoding.MOST = 8
    encoding.PART = 4
    encoder = Held(pathlib.Path(sys.argv.pop(1)), after=2)
    if sys.argv.pop(1) == "go":
        encoder.gate.unlink()
    encoders.make_encoder = lambda *_, **__: encoder
    sys.exit(main(["learn", *sys.argv[1:], "--batch-size", "4", "--jobs", "2"]))
"""


@needs_proc
def test_the_whole_command_is_killed_and_goes_on(tool: Tool, alone: dict[str, bytes]) -> None:
    """No process is left behind, and what was encoded is not encoded again."""
    script = tool.folder / "start.py"
    script.write_text(START)
    command = [sys.executable, script, tool.folder / "gate", "stop"]
    command += [tool.file, tool.folder / "photos"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    with subprocess.Popen(command, env=environment) as process:
        parts = tool.folder / "birds.frugal.parts"
        wait_until(lambda: list(parts.glob("*.npz")) or process.poll() is not None)
        workers = descendants(process.pid)
        process.kill()
    assert workers
    assert not tool.file.exists()
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))
    command[3] = "go"
    ended = subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True, timeout=PATIENCE
    )
    assert "encoded before, going on from there" in ended.stdout
    assert arrays(tool.file) == alone
    assert tool.beside == ["birds.frugal", "birds.frugal.undo"]


@needs_proc
def test_on_ray_a_worker_is_killed_and_the_file_is_the_same(
    tool: Tool, alone: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install '.[ray]'")
    held = Held(tool.folder / "gate")
    monkeypatch.setattr("frugalvae.encoders.make_encoder", lambda *_, **__: held)
    killed: list[int] = []
    threading.Thread(target=kill_a_run, args=(killed, "_ray_task", held.gate), daemon=True).start()
    words = ("--batch-size", 4, "--ray", "--jobs", 2)
    assert "learned 3 classes from 60 images" in tool("learn", tool.folder / "photos", *words)
    assert len(killed) == 1
    assert arrays(tool.file) == alone
    assert tool.beside == ["birds.frugal", "birds.frugal.undo"]


def test_other_memories_are_taught_in_many_processes(
    tool: Tool, small: None, tmp_path: Path
) -> None:
    """Features travel where sums do not say all."""
    photographs(tmp_path / "photos")
    files = []
    for jobs in (1, 2):
        tool.file = tmp_path / f"{jobs}.frugal"
        tool.learn(tmp_path / "photos", "--jobs", jobs)
        files.append(arrays(tool.file))
    assert files[0] == files[1]


class Simulated:
    """A table whose rows are made when they are asked for."""

    def __getitem__(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        rng = np.random.default_rng(int(rows[0]))
        return rng.standard_normal((len(rows), 32), np.float32) + (rows % 5)[:, None]


def peak(count: int) -> int:
    rows = np.arange(count)
    names = ["x"] * count
    samples = Samples("x", names, rows=Rows(Simulated(), rows), labels=rows % 5)  # type: ignore[arg-type]
    chunks = encoding.chunks_of(samples, count // 1024)
    tracemalloc.start()
    model, places = learned(chunks, "abcde")
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.n_samples_of_class.sum() == count
    return found - places.nbytes


def learned(chunks: list[Samples], classes: str, kept: bool = True) -> tuple[Model, Any]:
    """What a model becomes of chunks, and where the samples are that could be read."""
    x, y, memory, places, _ = encoding.add_up(Model(), chunks, run_in_process, None)
    labels = np.array(list(classes))
    given = (x, labels[y]) if kept else (x[:0], labels[y[:0]])
    return Model().learn(*given, sums=Sums(labels, memory, memory.counts_)), places


def in_memory(x: NDArray[np.float32], count: int) -> list[Samples]:
    """Rows of two classes in turn, in so many chunks."""
    rows = np.arange(len(x))
    samples = Samples("x", ["x"] * len(x), rows=Rows(x, rows), labels=rows % 2)
    return encoding.chunks_of(samples, count)


def test_memory_does_not_grow_with_the_number_of_samples() -> None:
    peak(4 * 1024)  # what is imported and kept once
    assert peak(32 * 1024) < 1.2 * peak(8 * 1024)


def test_a_chunk_that_takes_features_otherwise_is_summed_again() -> None:
    """The first chunk has no negative features, so that roots are taken; a later one has."""
    rng = np.random.default_rng(0)
    x = np.abs(rng.normal(size=(3 * 1024, 4))).astype(np.float32)
    x[2000] *= -1
    model, _ = learned(in_memory(x, 3), "ab")
    assert model.memory.sums_.rooted  # type: ignore[union-attr]
    assert model.n_samples_of_class.tolist() == [1536, 1536]


def test_sums_alone_can_be_learned() -> None:
    x = np.random.default_rng(0).normal(size=(2048, 4)).astype(np.float32)
    model, _ = learned(in_memory(x, 2), "ab", kept=False)
    assert model.n_samples_of_class.tolist() == [512, 512]
