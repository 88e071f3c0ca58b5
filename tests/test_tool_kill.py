"""Nothing is lost: kills at any moment, full disks, several processes at once, and undo."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frugalvae import FrugalClassifier
from frugalvae.cli.main import main
from frugalvae.errors import InputError
from frugalvae.files import locked, write_bytes
from frugalvae.storage import store as storing
from frugalvae.storage.store import Store
from tests.killing import full
from tests.tool import QUICK, Encoders, Tool, paint
from tests.waiting import PATIENCE, wait_until

ROOT = Path(__file__).parent.parent
COLOURS = np.array([[200, 30, 30], [30, 200, 30], [30, 30, 200]], np.float32)

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")


class Killer:
    """Talks to a process of :mod:`tests.killing`."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.killing"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)

    def __call__(
        self,
        *words: object,
        nth: int | None = None,
        within: int | None = None,
        most: int | None = None,
    ) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        asked = {"words": [*map(str, words)], "nth": nth, "within": within, "most": most}
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def close(self) -> None:
        self.process.communicate()


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    killer = Killer()
    yield killer
    killer.close()


class Scene:
    """A file that knows two classes and has something to undo, and a folder with a third."""

    def __init__(self, folder: Path, killer: Killer, parts: Sequence[str] = QUICK) -> None:
        self.folder, self.killer = folder, killer
        self.file, self.images = folder / "birds.frugal", paint(folder / "new", "emu", count=8)
        paint(folder / "grown", "cat", count=8)  # two are new
        self.beginning = folder / "beginning"
        self.beginning.mkdir()
        for name in ("cat", "dax"):
            more = [] if self.file.exists() else parts
            done = killer("learn", self.file, paint(folder / name, name), "--quiet", *more)
            assert done == 0
        assert killer("learn", folder / "other", self.images, "--quiet", *parts) == 0
        for name in ("birds.frugal", "birds.frugal.undo"):
            shutil.copy(folder / name, self.beginning / name)
        self.before = self.answers()
        assert self.learn() == 0
        self.after, self.size = self.answers(), self.file.stat().st_size
        assert len(self.after) == 3

    def restart(self) -> None:
        """Put the beginning back."""
        for path in self.folder.glob("*birds.frugal*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for path in self.beginning.iterdir():
            shutil.copy(path, self.folder)

    def learn(self, **when: Any) -> int:
        """Learn the third class, from the beginning."""
        self.restart()
        return self.again(**when)

    def again(self, **when: Any) -> int:
        """The same command, with whatever is there."""
        words = ("--batch-size", 4, "--wait", PATIENCE, "--quiet")
        return self.killer("learn", self.file, self.images, *words, **when)

    def scrub(self, **when: Any) -> int:
        """Forget the first class, and all that could bring it back."""
        return self.killer("forget", self.file, "cat", "--scrub", "--quiet", **when)

    @property
    def classes(self) -> list[str]:
        """What the file knows."""
        known: list[str] = FrugalClassifier.load(self.file).classes_.tolist()
        return known

    @property
    def beside(self) -> list[str]:
        """All files that belong to the classifier, hidden ones too."""
        return sorted(path.name for path in self.folder.glob("*birds.frugal*"))

    def answers(self) -> list[list[float]]:
        """All that the classifier can say of three colours."""
        answers: list[list[float]] = (
            FrugalClassifier.load(self.file).predict_proba(COLOURS).T.tolist()
        )
        return answers

    def check(self) -> str:
        """The file is whole, old or new; after the same command new, with the old to go back."""
        now = self.answers()
        assert now in (self.before, self.after)
        assert self.again() == 0
        assert self.answers() == self.after
        old = (self.beginning / "birds.frugal").read_bytes()
        assert (self.folder / "birds.frugal.undo").read_bytes() == old
        assert self.beside == ["birds.frugal", "birds.frugal.undo"]
        return "old" if now == self.before else "new"


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, killer: Killer) -> Scene:
    return Scene(tmp_path_factory.mktemp("scene"), killer)


@pytest.fixture(scope="module")
def default_scene(tmp_path_factory: pytest.TempPathFactory, killer: Killer) -> Scene:
    return Scene(tmp_path_factory.mktemp("default"), killer, parts=[])


# --------------------------------------------------------------------------- kills


@needs_fork
def test_killed_in_the_middle_of_writing_a_file_nothing_is_lost(scene: Scene) -> None:
    """At its first byte, at its last, and between."""
    for within in (0, 1, scene.size // 2, scene.size - 1):
        assert scene.learn(within=within) == -signal.SIGXFSZ
        assert scene.check() == "old"


@needs_fork
def test_killed_before_each_operation_on_files_nothing_is_lost(scene: Scene) -> None:
    found = set()
    for nth in range(1000):
        ended = scene.learn(nth=nth)
        found.add(scene.check())
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
    assert nth > 20
    assert found == {"old", "new"}


def known(file: Path) -> dict[str, int]:
    """Classes and how many samples each was given."""
    loaded = FrugalClassifier.load(file)
    return dict(zip(loaded.classes_.tolist(), loaded.n_samples_of_class_.tolist(), strict=True))


#: Every other verb that changes a file, and what the file knows afterwards.
CHANGES: dict[str, tuple[list[str], dict[str, int]]] = {
    "learn": (["learn", "grown/"], {"cat": 8, "dax": 6}),
    "learn-class": (["learn", "new/emu", "--class", "cat"], {"cat": 14, "dax": 6}),
    "rename": (["rename", "cat", "gnu"], {"gnu": 6, "dax": 6}),
    "forget": (["forget", "cat"], {"dax": 6}),
    "undo": (["undo"], {"cat": 6}),
    "merge": (["merge", "./other"], {"cat": 6, "dax": 6, "emu": 8}),
}

#: Those that need the default memory.
SUMS: dict[str, tuple[list[str], dict[str, int]]] = {
    "merge": CHANGES["merge"],
    "merge-classes": (["merge-classes", "cat", "dax"], {"cat": 12}),
    "unlearn": (["unlearn", "cat", "cat/cat/0.png", "cat/cat/1.png"], {"cat": 4, "dax": 6}),
    "forget": (["forget", "cat", "--with", "cat/cat"], {"dax": 6}),
}


@needs_fork
@pytest.mark.parametrize("change", SUMS)
def test_what_adds_up_killed_before_each_operation_happens_once(
    default_scene: Scene, change: str
) -> None:
    check_happens_once(default_scene, *SUMS[change])


@needs_fork
@pytest.mark.parametrize("change", CHANGES)
def test_any_change_killed_before_each_operation_happens_once(scene: Scene, change: str) -> None:
    check_happens_once(scene, *CHANGES[change])


def check_happens_once(scene: Scene, command: list[str], after: dict[str, int]) -> None:
    """It is done or not, and after the same command it is done, and can be undone, once."""
    verb, *words = command
    words = [str(scene.folder / word) if "/" in word else word for word in words]

    def act(**when: Any) -> int:
        code: int = scene.killer(verb, scene.file, *words, "--quiet", **when)
        return code

    beginning, found = (scene.beginning / "birds.frugal").read_bytes(), []
    for nth in range(1000):
        scene.restart()
        ended = act(nth=nth)
        found.append(known(scene.file))
        assert act() in ((0,) if found[-1] != after else (0, 2))  # 2: there is no such class now
        assert known(scene.file) == after
        undo = scene.folder / "birds.frugal.undo"
        assert undo.exists() == (verb != "undo")
        assert verb == "undo" or undo.read_bytes() == beginning
        assert scene.beside == ["birds.frugal", "birds.frugal.undo"][: 1 + (verb != "undo")]
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
    assert nth > 5
    assert {"cat": 6, "dax": 6} in found
    assert after in found[:-1]


@needs_fork
def test_scrubbing_killed_before_each_operation_on_files_leaves_no_way_back(scene: Scene) -> None:
    found = set()
    for nth in range(1000):
        scene.restart()
        ended = scene.scrub(nth=nth)
        found.add(tuple(scene.classes))
        if "cat" not in scene.classes:
            assert set(scene.beside) <= {"birds.frugal", ".birds.frugal.lock"}
        else:
            assert scene.scrub() == 0
            assert scene.beside == ["birds.frugal"]
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
    assert found == {("cat", "dax"), ("dax",)}


@needs_fork
def test_scrubbing_removes_what_a_killed_command_left_a_moment_ago(scene: Scene) -> None:
    left: set[str] = set()
    for nth in range(1000):
        if scene.learn(nth=nth) == 0:
            break
        left |= set(scene.beside)
        if len(scene.beside) > 3 and "emu" not in scene.classes:
            assert main(["forget", str(scene.file), "cat", "--scrub", "--quiet"]) == 0
            assert scene.beside == ["birds.frugal"]
    assert "birds.frugal.parts" in left
    assert len([name for name in left if name.startswith(".")]) > 2  # the lock, and unfinished ones


def test_scrubbing_leaves_the_folder_of_someone_else_alone(tool: Tool) -> None:
    tool.learn(paint(tool.folder / "one", "cat", "dax"))
    diary = tool.folder / "birds.frugal.parts" / "diary.txt"
    diary.parent.mkdir()
    diary.write_text("mine")
    tool("forget", "cat", "--scrub")
    assert diary.read_text() == "mine"


def test_a_process_of_its_own_is_killed_while_it_learns(tmp_path: Path) -> None:
    """The whole command from the start, with the encoder that it has by default."""
    images, file = paint(tmp_path / "new", "cat", "dax", count=3), tmp_path / "birds.frugal"
    command = [sys.executable, "-m", "frugalvae", "learn", str(file), str(images), *QUICK]
    with subprocess.Popen(command) as process:
        lock = tmp_path / ".birds.frugal.lock"
        wait_until(lambda: lock.exists() or process.poll() is not None)
        process.kill()  # unless it has learned by now
    assert subprocess.run(command, check=False).returncode == 0
    assert FrugalClassifier.load(file).classes_.tolist() == ["cat", "dax"]
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["birds.frugal", "birds.frugal.undo", "new"]


# --------------------------------------------------------------------------- full disks


@needs_fork
@pytest.mark.parametrize("most", [0, 100, -1])
def test_on_a_full_disk_the_old_file_stays(scene: Scene, most: int) -> None:
    room = scene.size + most if most < 0 else most  # the last has room for all but a byte
    assert scene.learn(most=room) == 2
    assert scene.answers() == scene.before
    assert scene.check() == "old"


@pytest.mark.parametrize("operation", ["fsync", "replace", "link"])
def test_the_error_says_that_there_is_no_room(
    tool: Tool, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    tool.learn(paint(tool.folder / "one", "cat"))
    before = tool.file.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(os, operation, full)
        if operation == "link":  # a file gets a copy where it cannot have a second name
            patched.setattr(storing, "write_bytes", full)
        error = tool.learn(paint(tool.folder / "two", "dax"), code=2)
    assert f"{tool.file}: there is no room to write it (No space left on device)" in error
    assert tool.file.read_bytes() == before
    tool.learn(tool.folder / "two")
    assert tool.classes == ["cat", "dax"]


def test_a_first_save_that_fails_leaves_nothing(
    tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    images, made = paint(tool.folder / "one", "cat"), []
    replace = os.replace

    def second_fails(*paths: Any) -> None:
        made.append(paths)
        full() if len(made) > 1 else replace(*paths)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", second_fails)
        assert "there is no room to write it" in tool.learn(images, code=2)
    assert tool.beside == [f"{tool.file.name}.parts"]  # what is encoded
    assert len(made) > 1


# --------------------------------------------------------------------------- undo


def test_undo_goes_back_one_step_and_says_which(tool: Tool) -> None:
    tool.learn(paint(tool.folder / "one", "cat", "dax"))
    before = tool.file.read_bytes()
    tool.learn(paint(tool.folder / "two", "emu"))
    assert tool.json("status")["undo"] is True
    said = tool("undo").splitlines()
    assert said[-2:] == ["no longer known: emu", f"{tool.file} is as it was before that"]
    assert tool.file.read_bytes() == before
    assert tool.beside == ["birds.frugal"]
    assert "there is nothing to undo" in tool("undo", code=2)
    assert "there is no such file" in Tool(tool.folder / "one", tool.capsys)("undo", code=2)


def test_undo_takes_back_the_first_lesson_too(tool: Tool) -> None:
    folder = paint(tool.folder / "one", "cat", "dax")
    tool.learn(folder)
    assert tool.beside == ["birds.frugal", "birds.frugal.undo"]
    said = tool("undo").splitlines()
    assert said[1:] == [
        "no longer known: cat, dax",
        f"{tool.file} is as it was before that: it knows no class",
    ]
    assert tool.beside == ["birds.frugal"]
    status = tool.json("status")
    assert (status["classes"], status["tasks"], status["undo"]) == (0, [], False)
    assert "encoder" not in tool("status")
    assert f"{tool.file}: there is nothing to undo" in tool("undo", code=2)
    for verb, *words in (("predict", folder), ("rename", "cat", "emu"), ("forget", "cat")):
        assert f"{tool.file} knows no class" in tool(verb, *words, code=2)
    tool.learn(folder, "--memory", "gaussian-diagonal", "--head", "bayes")  # chosen anew
    assert tool.classes == ["cat", "dax"]
    assert Store(tool.file).read().document["memory"]["class"] == "GaussianMemory"


def test_the_only_class_is_forgotten_and_brought_back(tool: Tool) -> None:
    folder = paint(tool.folder / "one", "cat")
    tool.learn(folder)
    before = tool.file.read_bytes()
    assert "'cat' is forgotten; no class left" in tool("forget", "cat")
    assert [event["action"] for event in tool.json("history")] == ["learn", "forget"]
    assert "no longer known" not in tool("undo")
    assert tool.file.read_bytes() == before
    tool("forget", "cat", "--scrub")
    assert tool.beside == ["birds.frugal"]
    tool.learn(paint(tool.folder / "two", "dax"))
    assert tool.classes == ["dax"]


def test_where_a_file_has_one_name_only_the_old_one_is_copied(
    tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool.learn(paint(tool.folder / "one", "cat"))
    before = tool.file.read_bytes()
    monkeypatch.setattr(os, "link", full)
    tool.learn(paint(tool.folder / "two", "dax"))
    assert Store(tool.file).undo.read_bytes() == before
    assert tool.beside == ["birds.frugal", "birds.frugal.undo"]


def test_a_link_to_a_file_stays_a_link(tool: Tool) -> None:
    tool.learn(paint(tool.folder / "one", "cat"))
    (tool.folder / "elsewhere").mkdir()
    real = tool.file.rename(tool.folder / "elsewhere" / "real.frugal")
    tool.file.symlink_to(real)
    tool.learn(paint(tool.folder / "two", "dax"))
    assert tool.file.is_symlink()
    assert tool.classes == ["cat", "dax"]
    assert real.with_name("real.frugal.undo").exists()


# --------------------------------------------------------------------------- who may read it


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize("linked", [True, False])
def test_who_may_read_a_file_stays_as_it_was(
    tool: Tool, monkeypatch: pytest.MonkeyPatch, linked: bool
) -> None:
    if not linked:  # the old file is copied
        monkeypatch.setattr(os, "link", full)
    tool.learn(paint(tool.folder / "one", "cat"))
    assert mode(tool.file) == 0o644
    tool.file.chmod(0o600)
    tool.learn(paint(tool.folder / "two", "dax"))
    undo = Store(tool.file).undo
    assert (mode(tool.file), mode(undo)) == (0o600, 0o600)
    undo.chmod(0o644)
    tool("undo")
    assert mode(tool.file) == 0o600


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize("kept", [0o600, 0o640, 0o666, 0o444])
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path: Path, kept: int) -> None:
    for path in (tmp_path / "new", tmp_path / "old"):
        write_bytes(path, b"one")
        assert mode(path) == 0o644
    path.chmod(kept)
    write_bytes(path, b"two")
    assert path.read_bytes() == b"two"
    assert mode(path) == kept


def test_hidden_files_of_others_are_not_swept_away(
    tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storing, "STALE", 0)
    tool.learn(paint(tool.folder / "one", "cat", "dax"))
    mine = [".birds.frugal.20261116", ".birds.frugal.before.original", ".birds.frugal.my_notes"]
    for name in mine:
        (tool.folder / name).write_text("mine")
    tool.learn(paint(tool.folder / "two", "emu"))
    tool("forget", "cat", "--scrub")
    assert tool.beside == sorted(["birds.frugal", *mine])


# --------------------------------------------------------------------------- several processes


def test_the_second_process_waits_for_the_first(tool: Tool, encoders: Encoders) -> None:
    tool.learn(paint(tool.folder / "one", "cat"))
    held = (
        "import sys, time; from pathlib import Path; from frugalvae.files import locked\n"
        "with locked(Path(sys.argv[1]), 'frugalvae learn photos', 0):\n"
        "    print('held', flush=True); sys.stdin.read(1)"
    )
    command, pipe = [sys.executable, "-c", held, str(tool.file)], subprocess.PIPE
    more = paint(tool.folder / "two", "dax")
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        error = tool.learn(more, "--wait", 0.2, code=2)
        assert f"is being changed by process {other.pid} ('frugalvae learn photos', since " in error
        assert "wait longer than 0.2 s with --wait" in error
        assert tool.json("status")["classes"] == 1  # reading needs no lock
        assert tool.json("predict", more)["predictions"]
        other.send_signal(signal.SIGKILL)  # and who is dead holds none
    assert ".birds.frugal.lock" in tool.beside
    tool.learn(more, "--wait", 0)
    assert tool.beside == ["birds.frugal", "birds.frugal.undo"]


def test_the_lock_of_a_dead_process_is_taken_over_and_never_written_into(tmp_path: Path) -> None:
    file, lock = tmp_path / "birds.frugal", tmp_path / ".birds.frugal.lock"
    precious = tmp_path / "precious"
    precious.write_text("all that I have")
    os.link(precious, lock)  # a file that is more than a lock
    with locked(file, "frugalvae learn", 0):
        assert json.loads(lock.read_text())["process"] == os.getpid()
        with pytest.raises(InputError, match="is being changed by process"), locked(file, "", 0):
            pass
    assert precious.read_text() == "all that I have"
    assert not lock.exists()


def link(lock: Path) -> None:
    lock.symlink_to("precious")


def link_to_nothing(lock: Path) -> None:
    lock.symlink_to("absent")


@pytest.mark.parametrize("make", [link, link_to_nothing, Path.mkdir, os.mkfifo])
def test_what_is_no_lock_is_not_followed_nor_touched(
    tool: Tool, make: Callable[[Path], None]
) -> None:
    tool.learn(paint(tool.folder / "one", "cat"))
    (tool.folder / "precious").write_text("all that I have")
    lock = tool.folder / ".birds.frugal.lock"
    make(lock)
    before = lock.lstat(), tool.file.read_bytes()
    error = tool.learn(paint(tool.folder / "two", "dax"), code=2)
    assert f"{lock} is in the way: it is no plain file" in error
    assert (lock.lstat(), tool.file.read_bytes()) == before
    assert (tool.folder / "precious").read_text() == "all that I have"
    assert not (tool.folder / "absent").exists()


def test_many_that_wait_hold_the_lock_one_at_a_time(tmp_path: Path) -> None:
    """Each reads a number and writes the next; a lock that was left is in the way at first."""
    (tmp_path / ".counter.lock").touch()
    (tmp_path / "counter").write_text("0")
    counting = (
        "import sys; from pathlib import Path; from frugalvae.files import locked\n"
        "file = Path(sys.argv[1])\n"
        "for _ in range(25):\n"
        "    with locked(file, 'counting', 600):\n"
        "        file.write_text(str(int(file.read_text()) + 1))"
    )
    command = [sys.executable, "-c", counting, str(tmp_path / "counter")]
    running = [subprocess.Popen(command) for _ in range(4)]
    assert [process.wait() for process in running] == [0] * 4
    assert (tmp_path / "counter").read_text() == "100"
    assert [path.name for path in tmp_path.iterdir()] == ["counter"]


def test_two_that_learn_at_once_both_learn(tool: Tool) -> None:
    tool.learn(paint(tool.folder / "one", "cat"))
    start = (
        "import sys\n"
        "from frugalvae.cli.main import main\n"
        "from frugalvae import encoders\n"
        "from tests.colours import Colours\n"
        "encoders.make_encoder = lambda *_: Colours(pause=0.3)\n"
        f"sys.exit(main(['learn', *sys.argv[1:], '--wait', '{PATIENCE}']))"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", start, str(tool.file), str(paint(tool.folder / name, name))],
            cwd=ROOT,
        )
        for name in ("dax", "emu")
    ]
    assert [process.wait() for process in running] == [0, 0]
    assert sorted(tool.classes) == ["cat", "dax", "emu"]
    assert tool.beside == ["birds.frugal", "birds.frugal.undo"]
