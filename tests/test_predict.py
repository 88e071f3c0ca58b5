"""``frugalvae predict``: answers, as they come and in every form."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frugalvae import FrugalClassifier
from frugalvae.cli.main import main
from tests.test_images import save
from tests.tool import SHADES, Encoders, Tool, paint

QUICK = ["--memory=gaussian-diagonal", "--head=nearest-mean", "--set=encoder.size=32", "--quiet"]


def test_json_has_what_the_classifier_says(taught: Tool) -> None:
    paths = sorted((taught.folder / "one").rglob("*.png"))
    answers = taught.json("predict", taught.folder / "one", "--top", 9)
    assert list(answers) == ["file", "predictions", "unreadable", "skipped"]
    assert [answer["input"] for answer in answers["predictions"]] == [str(path) for path in paths]
    x = [[r + n, g, b] for r, g, b in ((200, 30, 30), (30, 200, 30)) for n in range(6)]
    classifier = FrugalClassifier.load(taught.file)
    for answer, row in zip(
        answers["predictions"], classifier.predict_proba(np.array(x, np.float32)), strict=True
    ):
        chances = {top["label"]: top["probability"] for top in answer["top"]}
        assert chances == dict(zip(classifier.classes_.tolist(), row.tolist(), strict=True))
        assert answer["label"] == max(chances, key=lambda label: chances[label])
        assert answer["known"] is None


def test_csv_has_a_row_for_each_rank(taught: Tool) -> None:
    rows = list(csv.DictReader(io.StringIO(taught("predict", taught.folder, "--csv", "--top=3"))))
    columns = "input,rank,label,probability,known,familiarity,reason,sure,set"
    assert ",".join(rows[0]) == columns
    assert len(rows) == 18 * 3
    assert [row["rank"] for row in rows[:3]] == ["1", "2", "3"]
    assert sum(float(row["probability"]) for row in rows[:3]) == pytest.approx(1, abs=1e-5)


def test_what_cannot_be_read_is_named_and_the_rest_is_answered(taught: Tool) -> None:
    (taught.folder / "empty.png").touch()
    inputs = [taught.folder / name for name in ("empty.png", "absent.png", "one/cat/1.png")]
    answers = taught.json("predict", *inputs, code=1)
    assert [answer["label"] for answer in answers["predictions"]] == ["cat"]
    assert [entry["reason"] for entry in answers["unreadable"]] == [
        "the file is empty",
        "No such file or directory",
    ]
    assert f"frugalvae: {inputs[0]} cannot be read: the file is empty" in taught.err
    assert taught("predict", inputs[0], code=1).count("\n") == 1
    taught("predict", *inputs, "--csv", code=1)
    rows = list(csv.DictReader(io.StringIO(taught.out)))
    assert [(row["input"], row["label"], row["reason"]) for row in rows] == [
        (str(inputs[0]), "", "the file is empty"),
        (str(inputs[1]), "", "No such file or directory"),
        (str(inputs[2]), "cat", ""),
    ]


def test_rows_of_feature_files_are_named(taught: Tool) -> None:
    path = taught.folder / "rows.npz"
    x = np.array([[203, 30, 30], [30, 30, 203]], np.float32)
    np.savez(path, x=x)
    answers = taught.json("predict", path)["predictions"]
    assert [(answer["input"], answer["label"]) for answer in answers] == [
        (f"{path}[0]", "cat"),
        (f"{path}[1]", "emu"),
    ]
    np.savez(path, x=x[:, :2])
    error = taught("predict", path, code=2)
    assert "have shape (2, 2); expected (n, 3), n at least 1: features of the encoder that" in error
    np.savez(path, y=x)
    assert "expected floats of shape (n, d) in x or x_test" in taught("predict", path, code=2)
    np.savez(path, x=x, encoder=np.array(json.dumps({"encoder": "colours", "weights": "9"})))
    assert "does not fit" in taught("predict", path, code=2)
    path.write_text("no archive")
    assert "not a readable .npz" in taught("predict", path, code=2)


def test_wrong_questions_are_refused(taught: Tool) -> None:
    (taught.folder / "nothing").mkdir()
    assert "no images in" in taught("predict", taught.folder / "nothing", code=2)
    taught.file.write_bytes(b"damaged")
    for verb in ("predict", "status"):
        words = [taught.folder / "one"] if verb == "predict" else []
        error = taught(verb, *words, code=2)
        assert f"{taught.file}: it is not a .frugal file" in error
    taught.file.unlink()
    assert f"make one with 'frugalvae learn {taught.file} FOLDER'" in taught("status", code=2)


def answered(tool: Tool, *words: object) -> dict[str, Any]:
    """The one answer of ``predict``."""
    [answer] = tool.json("predict", *words)["predictions"]
    return dict(answer)


def test_what_is_none_of_the_classes_is_told(taught: Tool) -> None:
    save(taught.folder / "other.png", (255, 0, 255))
    answer = answered(taught, "--unknown", taught.folder / "other.png")
    assert (answer["known"], answer["label"]) == (False, None)
    assert 0 <= answer["familiarity"] < 0.05
    said = taught("predict", "--unknown", taught.folder / "other.png")
    assert re.search(r"none of these, nearest is \w+ \([\d.]+% among the known classes\)\n", said)


def test_where_nothing_can_be_called_unknown_that_is_told(tool: Tool) -> None:
    tool("learn", paint(tool.folder / "one", "cat", "dax", count=1))
    assert answered(tool, "--unknown", tool.folder / "one" / "cat" / "0.png")["known"]
    assert "--unknown: nothing is called unknown yet" in tool.err


def test_the_familiarity_is_what_the_classifier_says(taught: Tool) -> None:
    images = taught.folder / "one" / "cat"
    x = np.array([[200 + n, 30, 30] for n in range(6)], np.float32)
    scores = FrugalClassifier.load(taught.file).familiarity(x)
    threshold = float(np.median(scores))
    words = ["predict", images, "--threshold", threshold]
    answers = taught.json(*words)["predictions"]
    assert [answer["familiarity"] for answer in answers] == scores.tolist()
    assert [answer["known"] for answer in answers] == (scores >= threshold).tolist()
    rows = list(csv.DictReader(io.StringIO(taught(*words, "--csv"))))
    assert [float(row["familiarity"]) for row in rows] == pytest.approx(scores.tolist(), abs=1e-6)


def test_classes_that_are_not_probable_enough_are_not_named(taught: Tool) -> None:
    path = taught.folder / "x.npz"
    between = np.linspace(SHADES["cat"], SHADES["dax"], 9999, dtype=np.float32)
    certain = FrugalClassifier.load(taught.file).predict_proba(between).max(axis=1)
    np.savez(path, x=between[[certain.argmin()]])
    chances = [entry["probability"] for entry in answered(taught, path, "--top", 3)["top"]]
    assert 0.99 > chances[0] > chances[1]
    words = [path, "--top", 3, "--min-probability"]
    least = (chances[0] + chances[1]) / 2
    assert len(answered(taught, *words, least)["top"]) == 1
    least = (chances[0] + 1) / 2
    unsure = answered(taught, *words, least)
    assert (unsure["label"], unsure["top"]) == (None, [])
    assert taught("predict", *words, least) == f"{path}[0]  not sure\n"
    assert taught("predict", *words, least, "--csv").splitlines()[1] == f"{path}[0],,,,,,,,"


def test_answers_are_given_only_where_few_enough_are_wrong(tool: Tool) -> None:
    learned = tool("learn", paint(tool.folder / "one", "cat", "dax", "emu"))
    assert "expected accuracy on new images like these: about 100% (" in learned
    one = tool.folder / "one" / "cat" / "3.png"
    [line] = tool("predict", one, "--error=50%", "--sets=0.5").splitlines()
    assert re.fullmatch(r".*3.png  cat \d+\.\d%, one of: cat", line)
    [line] = tool("predict", one, "--error=2%").splitlines()  # 18 samples promise no such thing
    assert re.fullmatch(r".*3.png  not sure, likeliest is cat \(\d+\.\d%\)", line)
    [answer] = tool.json("predict", one, "--error=0.02", "--sets=50%")["predictions"]
    assert (answer["label"], answer["sure"], answer["set"]) == (None, False, ["cat"])
    [row] = csv.DictReader(io.StringIO(tool("predict", one, "--csv", "--error=50%")))
    assert (row["label"], row["sure"], row["set"]) == ("cat", "true", "")
    expected = tool.json("status")["expected"]
    assert expected["held_out"] == 18
    assert expected["classes"] == {"cat": 1.0, "dax": 1.0, "emu": 1.0}
    assert (expected["enough"], expected["intervals"]) == (True, {})  # six of each are too few
    assert 0 <= expected["low"] <= expected["accuracy"] <= expected["high"] <= 1
    assert "expected accuracy on new images like these: about 100%" in tool("status")


@pytest.mark.parametrize("value", ["much%", "120%", "2"])
def test_a_share_that_is_none_is_refused(taught: Tool, value: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        taught("predict", taught.folder, f"--error={value}")


def test_a_wrong_path_is_refused_before_the_work(taught: Tool) -> None:
    absent, there = taught.folder / "absent.png", taught.folder / "one" / "cat" / "1.png"
    script = "import sys; from frugalvae.cli.main import main; code = main(sys.argv[1:]); "
    script += "assert 'numpy' not in sys.modules; raise SystemExit(code)"
    for words in ([taught.file, absent], [f"{taught.file}.gone", there]):
        command = [sys.executable, "-c", script, "predict", *map(str, words)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ended.returncode == 2, ended.stderr
        assert "there is no such file" in ended.stderr
    place = taught.folder / "nowhere" / "answers.csv"
    assert "does not exist; make it first" in taught("predict", there, "-o", place, code=2)


def test_a_wrong_feature_file_is_refused_before_any_answer(taught: Tool) -> None:
    wrong = taught.folder / "wrong.npz"
    wrong.write_text("no archive")
    assert "not a readable" in taught("predict", taught.folder / "one", wrong, code=2)
    assert taught.out == ""


# --------------------------------------------------------------------------- as they come


def test_an_answer_is_printed_as_soon_as_its_batch_is_encoded(
    taught: Tool, encoders: Encoders, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, seen = encoders.images, []

    def printed(text: str) -> None:
        seen.append((text.count("\n"), encoders.images - before))

    monkeypatch.setattr("frugalvae.cli.predict.print_now", printed)
    taught("predict", taught.folder, "--batch-size", 4)
    assert seen == [(4, 4), (4, 8), (4, 12), (4, 16), (2, 18)]
    seen.clear()
    before = encoders.images
    taught("predict", taught.folder, "--batch-size", 4, "--json")
    assert [encoded for _, encoded in seen] == [18]


def test_a_process_answers_while_paths_still_arrive(tmp_path: Path) -> None:
    images, file = paint(tmp_path / "one", "cat", "dax", count=3), tmp_path / "birds.frugal"
    assert main(["learn", str(file), str(images), *QUICK]) == 0
    command = [sys.executable, "-m", "frugalvae", "predict", str(file), "-", "--jsonl"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for name in ("cat/0.png", "dax/2.png"):
            print(images / name, file=process.stdin, flush=True)
            answer = json.loads(process.stdout.readline())  # or wait for ever
            assert (answer["input"], answer["label"]) == (str(images / name), name[:3])
        process.stdin.close()
        assert process.stdout.read() == ""
        assert process.wait() == 0


def test_a_reader_that_leaves_after_the_first_line_ends_the_work(tmp_path: Path) -> None:
    images, file = paint(tmp_path / "one", "cat", "dax", count=3), tmp_path / "birds.frugal"
    assert main(["learn", str(file), str(images), *QUICK]) == 0
    many = "\n".join([str(images / "cat" / "0.png")] * 20_000)  # which would take minutes
    command = [sys.executable, "-m", "frugalvae", "predict", str(file), "-"]
    (tmp_path / "paths").write_text(many)
    with (
        (tmp_path / "paths").open() as paths,
        subprocess.Popen(command, stdin=paths, stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdout is not None
        assert " cat " in process.stdout.readline()
        process.stdout.close()
        assert process.wait(timeout=60) == 141


@pytest.mark.parametrize(("end", "words"), [("\n", []), ("\r\n", []), ("\0", ["-0"])])
def test_paths_come_from_standard_input_too(
    taught: Tool, monkeypatch: pytest.MonkeyPatch, end: str, words: list[str]
) -> None:
    one, two = taught.folder / "one" / "cat", taught.folder / "two" / "emu" / "1.png"
    given = end.join([str(one), str(two), "absent.png"])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
    answers = taught.json("predict", two, "-", *words, code=1)
    labels = [answer["label"] for answer in answers["predictions"]]
    assert labels == ["emu", *["cat"] * 6, "emu"]
    assert answers["unreadable"] == [{"input": "absent.png", "reason": "No such file or directory"}]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert taught("predict", "-") == ""


# --------------------------------------------------------------------------- forms


def test_json_lines_are_the_objects_of_json(taught: Tool) -> None:
    (taught.folder / "one" / "cat" / "2.png").write_bytes(b"")
    document = taught.json("predict", taught.folder / "one", code=1)
    taught("predict", taught.folder / "one", "--jsonl", code=1)
    lines = [json.loads(line) for line in taught.out.splitlines()]
    assert [line for line in lines if "reason" not in line] == document["predictions"]
    assert [line for line in lines if "reason" in line] == document["unreadable"]
    assert lines[2] == document["unreadable"][0]  # in the order of the inputs


@pytest.mark.parametrize("form", ["json", "jsonl", "csv"])
def test_a_file_takes_the_form_of_its_ending(taught: Tool, form: str) -> None:
    printed = taught("predict", taught.folder / "one", f"--{form}")
    for words, name in (([], f"answers.{form}"), ([f"--{form}"], "answers.txt")):
        output = taught.folder / name
        assert taught("predict", taught.folder / "one", "-o", output, *words) == ""
        assert output.read_text("utf-8") == printed


STRANGE = ["photo[final].jpg", "cat[/x].png", "[red]a.png", "two\nlines.png", "\x1b[2Jb.png"]
STRANGE += ["a\u202egpj.png", ":smile:.png"]


def test_names_are_shown_as_text_and_kept_as_they_are_for_scripts(taught: Tool) -> None:
    paths = [taught.folder / "strange" / name for name in STRANGE]
    for path in paths:
        save(path, SHADES["cat"])
    lines = taught("predict", *paths).splitlines()
    assert len(lines) == len(paths)
    for path, line in zip(paths, lines, strict=True):
        assert line.isprintable()
        assert line.startswith(str(path).encode("unicode_escape").decode() + " ")
    answers = taught.json("predict", *paths)["predictions"]
    assert [answer["input"] for answer in answers] == [str(path) for path in paths]
    rows = csv.DictReader(io.StringIO(taught("predict", *paths, "--csv"), newline=""))
    assert [row["input"] for row in rows] == [str(path) for path in paths]


FORMULAS = ["=HYPERLINK(1)", "+1+1", "-1-1", "@SUM(1)"]


def test_csv_has_nothing_that_a_spreadsheet_takes_for_a_formula(tool: Tool) -> None:
    x = np.eye(4, 3) + 1.0
    clf = FrugalClassifier(random_state=0).fit(x.repeat(3, axis=0), np.repeat(FORMULAS, 3))
    clf.save(tool.file)
    np.savez(tool.folder / "=rows.npz", x=x.astype(np.float32))
    with contextlib.chdir(tool.folder):
        said = tool("predict", "=rows.npz", "--csv", "--top=4", "--sets=50%")
        told = tool.json("predict", "=rows.npz")["predictions"]
    rows = [*csv.DictReader(io.StringIO(said))]
    assert {row["label"] for row in rows} == {f"'{name}" for name in FORMULAS}
    assert rows[0]["input"] == "'=rows.npz[0]"
    cells = [cell for row in rows for cell in row.values()]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]
    assert {answer["label"] for answer in told} <= set(FORMULAS)  # JSON is for programs


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes on Linux only")
def test_names_that_are_not_utf_8_are_answered_in_every_form(tmp_path: Path) -> None:
    images, file = paint(tmp_path / "one", "cat", "dax", count=3), tmp_path / "birds.frugal"
    assert main(["learn", str(file), str(images), *QUICK]) == 0
    odd = os.fsencode(tmp_path) + b"/caf\xe9.png"
    os.rename(images / "cat" / "0.png", odd)

    def asked(*words: str) -> bytes:
        command = [sys.executable, "-m", "frugalvae", "predict", str(file), odd, *words]
        return subprocess.run(command, capture_output=True, check=True).stdout

    assert b"/caf\\xe9.png  cat" in asked()
    assert asked("--csv").splitlines()[1].startswith(odd + b",1,cat")
    assert os.fsencode(json.loads(asked("--jsonl"))["input"]) == odd
    assert os.fsencode(json.loads(asked("--json"))["predictions"][0]["input"]) == odd


def test_a_terminal_sees_lines_that_can_be_copied(
    taught: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long names are neither cut nor folded, also where a bar is drawn below them."""
    long = taught.folder / ("a" * 100) / ("b" * 100) / "1.png"
    save(long, SHADES["cat"])
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda _: True)
    assert f"{long}  cat " in taught("predict", long)
    odd = taught.folder / "\x9b2J.png"
    save(odd, SHADES["cat"])
    for form in ("--csv", "--json", "--jsonl"):
        assert "\x9b" not in taught("predict", odd, form)
    assert "\x1b[" not in taught("predict", long, "--quiet")


def test_paths_that_end_with_nul_need_an_option(
    taught: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = b"\0".join(str(path).encode() for path in sorted(taught.folder.rglob("*.png"))[:2])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given + b"\0")))
    assert "paths on standard input end with NUL; give -0 as well" in taught("predict", "-", code=2)


def test_a_terminal_without_some_letters_shows_escapes(taught: Tool) -> None:
    np.savez(taught.folder / "\u00e9.npz", x=np.zeros((1, 3), np.float32))
    command = [
        sys.executable,
        "-m",
        "frugalvae",
        "predict",
        taught.file,
        taught.folder / "\u00e9.npz",
    ]
    done = subprocess.run(
        list(map(str, command)),
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\xe9.npz[0]" in done.stdout


def test_an_output_of_another_form_is_refused(taught: Tool) -> None:
    image = taught.folder / "one" / "cat" / "1.png"
    for name, words in (("a.xlsx", []), ("a.json", ["--csv"])):
        error = taught("predict", image, "-o", taught.folder / name, *words, code=2)
        assert f"{name} has the ending" in error
        assert "expected " + ("one of --csv" if words else ".json or .jsonl or .csv") in error
        assert not (taught.folder / name).exists()
