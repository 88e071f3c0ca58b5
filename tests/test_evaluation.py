"""The scores of an evaluation against NumPy twins, its page, and the command."""

from __future__ import annotations

import base64
import io
import json
import re
import shutil
from functools import partial
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.metrics import balanced_accuracy_score, confusion_matrix

from frugalvae import FrugalClassifier
from frugalvae.cli.main import main, parser
from frugalvae.encoders import Choice, load_encoder, make_encoder
from frugalvae.errors import InputError, MemoryFileError
from frugalvae.images.feature_file import Features, write_features
from frugalvae.pages.evaluation import (
    LIMITS,
    evaluation_page,
    pictured,
    summary,
)
from frugalvae.pages.plots import reliability_bins
from frugalvae.pages.render import SIDE, thumbnail, thumbnails
from frugalvae.parts import make_memory
from frugalvae.parts.protocols import MemoryReport
from frugalvae.samples import open_samples
from frugalvae.storage.store import Store
from frugalvae.verbs import evaluate as verb
from frugalvae.verbs.evaluate import Evaluation
from tests.colours import Colours
from tests.test_images import save

HOSTILE = [
    '<script>alert("1")</script>',
    'a "quoted" & <b>',
    "it's {{ 7 * 7 }}",
    "Æther_鳥",
    "' onx=",
]
VOID = {"meta", "img", "br", "wbr"}
LEAVES = {"path", "rect", "line", "use"}

REMEMBERED = "frugalvae.encoders"


def evaluate(file: Path, images: Path, output: Path) -> Evaluation:
    """What the command shows; it writes the page, too."""
    options = parser("evaluate").parse_args(
        ["evaluate", str(file), str(images), "-o", str(output), "--quiet"]
    )
    options.run(options)
    model = Store(file).load()
    with open_samples(images, "testing") as samples:
        encoder, _ = samples.encoder(model.encoder, Choice(), file)
        return verb.evaluate(model, samples, encoder)


def made(k: int = 5, n: int = 60, tasks: int = 2, **changes: Any) -> Evaluation:
    """Random answers, somewhat better than chance, to ``n`` samples of ``k`` classes."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, k, n)
    logits = rng.normal(size=(n, k))
    logits[np.arange(n), truth] += 1.5
    odds = np.exp(logits)
    content: dict[str, Any] = {
        "classes": [f"class_{number}" for number in range(k)],
        "task_of_class": np.arange(k) * tasks // k,
        "truth": truth,
        "probabilities": odds / odds.sum(axis=1, keepdims=True),
        "samples": [f"class_{label}/{row}.png" for row, label in enumerate(truth)],
        "memory": MemoryReport("diagonal", k, tasks, make_memory("gaussian-diagonal").cost(4, k)),
    }
    return Evaluation(**content | changes)


class Page(HTMLParser):
    """Checks that tags are closed in order, and collects text, tags and attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in LEAVES
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def values(self, name: str) -> list[str]:
        return [value for attribute, value in self.attributes if attribute == name]


# --------------------------------------------------------------------------- scores


def test_scores_are_those_of_numpy_and_scikit_learn() -> None:
    e = made(n=200)
    answers = e.probabilities.argmax(1)
    assert e.accuracy == np.mean(answers == e.truth)
    assert e.mean_class_accuracy == pytest.approx(balanced_accuracy_score(e.truth, answers))
    np.testing.assert_array_equal(e.confusion, confusion_matrix(e.truth, answers))
    for task in (0, 1):
        inside = np.isin(e.truth, np.flatnonzero(e.task_of_class == task))
        assert e.task_counts[task] == inside.sum()
        assert e.task_accuracy[task] == pytest.approx(np.mean(e.correct[inside]))


def test_the_calibration_error_is_that_of_its_definition() -> None:
    e = made(n=500)
    total = 0.0
    for low in np.arange(15) / 15:
        inside = (e.confidence > low) & (e.confidence <= low + 1 / 15)
        if inside.any():
            gap = abs(e.correct[inside].mean() - e.confidence[inside].mean())
            total += inside.mean() * gap
    assert e.calibration_error == pytest.approx(total)
    assert sum(part.count for part in reliability_bins(e.confidence, e.correct)) == 500


def test_bins_hold_their_bounds_and_the_extremes() -> None:
    confidence = np.array([0.0, 0.25, 0.26, 1.0])
    bins = reliability_bins(confidence, np.array([False, True, True, True]), bins=4)
    assert [(part.low, part.count) for part in bins] == [(0.0, 2), (0.25, 1), (0.75, 1)]


def test_the_interval_is_wilsons() -> None:
    truth = np.zeros(10, int)
    probabilities = np.eye(2)[[0] * 9 + [1]]
    e = made(2, truth=truth, probabilities=probabilities, samples=["s"] * 10)
    np.testing.assert_allclose(e.interval, (0.5958, 0.9821), atol=1e-4)  # as tables have it
    perfect = made(2, truth=truth, probabilities=np.eye(2)[truth], samples=["s"] * 10)
    assert perfect.interval[1] == 1.0
    assert perfect.interval[0] == pytest.approx(0.7225, abs=1e-4)


def test_pairs_and_wrong_samples_are_all_mistakes_in_order() -> None:
    e = made(n=100)
    assert sum(pair.count for pair in e.pairs) == len(e.wrong) == (~e.correct).sum()
    assert [pair.count for pair in e.pairs] == sorted((p.count for p in e.pairs), reverse=True)
    assert list(e.confidence[e.wrong]) == sorted(e.confidence[e.wrong], reverse=True)
    rows = [row for pair in e.pairs for row in e.mistaken(pair)]
    assert sorted(rows) == sorted(e.wrong)
    for pair in e.pairs:
        assert len(e.mistaken(pair)) == pair.count
        assert all(e.correct[row] and e.truth[row] == pair.truth for row in e.typical(pair.truth))


def test_classes_and_tasks_without_samples_have_no_accuracy() -> None:
    e = made(4, tasks=4)
    few = e.truth < 2
    e = made(
        4, tasks=4, truth=e.truth[few], probabilities=e.probabilities[few],
        samples=[str(row) for row in np.flatnonzero(few)],
    )  # fmt: skip
    assert e.tested == [0, 1]
    assert np.isnan(e.class_accuracy[2:]).all()
    assert np.isnan(e.task_accuracy[2:]).all()
    content = e.to_json()
    assert content["classes"][3]["accuracy"] is None
    json.dumps(content, allow_nan=False)
    page = Page(evaluation_page(e, {}))
    assert "2 known classes without images here are not listed" in page.text


# --------------------------------------------------------------------------- the page


def picture(colour: str = "red") -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (40, 30), colour).save(buffer, "png")
    return buffer.getvalue()


def page_of(e: Evaluation) -> tuple[str, Page]:
    html = evaluation_page(e, thumbnails(pictured(e), lambda _: picture()))
    return html, Page(html)


@pytest.mark.parametrize("classes", [2, 8, LIMITS["table"] + 20])
@pytest.mark.parametrize("of_images", [True, False])
def test_the_page_is_well_formed_and_needs_nothing_from_outside(
    classes: int, of_images: bool
) -> None:
    html, page = page_of(made(classes, n=300, of_images=of_images))
    assert "script" not in page.tags
    assert not re.search(r"<link|@import|url\((?!#)|https?://(?!www\.w3\.org)", html)
    assert all(link.startswith("#") for link in page.values("href"))
    assert all(source.startswith("data:image/jpeg;base64,") for source in page.values("src"))
    assert bool(page.values("src")) == of_images
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in page.values("href")} <= set(ids)
    assert page.tags.count("h1") == 1
    assert len(page.values("alt")) == page.tags.count("img")


def test_hostile_names_are_shown_and_not_obeyed() -> None:
    e = made(
        classes=HOSTILE,
        skipped={"<img src=x>.png": "<b>bad</b>"},
        unknown={"<i>": 3},
        about={"classifier": "<u>.frugal"},
    )
    _, page = page_of(e)
    assert not {"script", "i", "u"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    for name in (*made(classes=HOSTILE).names, "<img src=x>.png", "<b>bad</b>", "<u>.frugal"):
        assert name in page.text
    assert "Æther 鳥" in page.text
    names = [f'{n}<script>"' for n in range(LIMITS["table"] + 5)]
    large = made(len(names), n=200, classes=names)
    assert "script" not in page_of(large)[1].tags


def test_a_perfect_classifier_has_a_page_too() -> None:
    truth = np.arange(4)
    e = made(4, truth=truth, probabilities=np.eye(4), samples=list("abcd"))
    html, page = page_of(e)
    assert "Every image is recognised." in page.text
    assert 'id="wrong"' not in html
    assert "100.0% of 4 images recognised" in " ".join(page.text.split())


def test_numbers_of_the_page_are_those_of_the_evaluation() -> None:
    e = made(skipped={"a/b.png": "the file is empty"}, unknown={"emu": 1}, file_size=2_000_000)
    _, page = page_of(e)
    text = " ".join(page.text.split())
    assert f"{100 * e.accuracy:.1f}% of 60 images recognised" in text
    assert f"{100 * e.calibration_error:.1f}% away from its probability" in text
    assert "a/b.png: the file is empty" in text
    assert "emu, 1 image " in text
    assert "The file takes 2.0 MB" in text
    cells = [int(part) for part in re.findall(r": (\d+) of \d+", " ".join(page.values("title")))]
    assert sum(cells) == 60


def test_a_large_matrix_is_compact_and_lists_the_worst_rows() -> None:
    e = made(200, n=3000, tasks=10)
    html, page = page_of(e)
    assert "The worst classes, and what they are mistaken for" in page.text
    assert page.tags.count("td") < 400
    assert len(html) < 3_000_000


def test_more_wrong_images_than_are_shown_are_counted() -> None:
    e = made(10, n=1000)
    assert len(e.wrong) > LIMITS["wrong"]
    _, page = page_of(e)
    assert f"there are {len(e.wrong) - LIMITS['wrong']:,} more" in page.text
    assert page.tags.count("figcaption") == LIMITS["wrong"]


def test_names_of_all_wrong_images_can_be_copied() -> None:
    e = made(10, n=1000, samples=[f"class_0/a b&<{row}>.png" for row in range(1000)])
    html, _ = page_of(e)
    copied = re.findall(r'<pre class="files">(.*?)</pre>', html, re.DOTALL)
    names = unescape(copied[0]).splitlines()
    assert names == [e.samples[row] for row in e.wrong]
    assert len(names) > LIMITS["wrong"]
    shown = re.findall(r"<code>(.*?)</code></figcaption>", html.replace("<wbr>", ""))
    assert [unescape(name) for name in shown] == names[: LIMITS["wrong"]]


def test_a_thousand_images_full_of_detail_stay_below_three_megabytes() -> None:
    rng = np.random.default_rng(0)

    def read(row: int) -> bytes:
        coarse = Image.fromarray(rng.integers(0, 256, (32, 48, 3), np.uint8))
        buffer = io.BytesIO()
        coarse.resize((480, 320)).save(buffer, "jpeg")
        return buffer.getvalue()

    e = made(20, n=1000)
    html = evaluation_page(e, thumbnails(pictured(e), read))
    assert 500_000 < len(html.encode()) < 3_000_000


def test_the_summary_says_what_matters() -> None:
    truth = np.zeros(100, int)
    named = partial(made, 2, classes=["cat", "emu"])
    right = [0] * 60 + [1] * 40
    sure = named(truth=truth, probabilities=np.eye(2)[right] * 0.98 + 0.01, samples=["s"] * 100)
    assert summary(sure) == (
        "40 are wrong; most often, cat is mistaken for emu (40 of 100). "
        "It is overconfident: its probabilities are 99.0% on average."
    )
    shy = named(truth=truth, probabilities=np.tile([0.6, 0.4], (100, 1)), samples=["s"] * 100)
    assert summary(shy) == (
        "Every image is recognised. It is underconfident: its probabilities are 60.0% on average."
    )
    few = named(truth=truth[:9], probabilities=np.tile([0.8, 0.2], (9, 1)), samples=["s"] * 9)
    assert summary(few).endswith(
        "Its probabilities are 80.0% on average; 9 images are too few to know whether that is "
        "too low."
    )


def test_an_accuracy_below_what_was_expected_is_told() -> None:
    truth = np.arange(100) % 2
    right = np.eye(2)[np.where(np.arange(100) < 70, truth, 1 - truth)] * 0.98 + 0.01
    named = partial(made, 2, classes=["cat", "emu"], truth=truth, samples=["s"] * 100)
    below = named(probabilities=right, expected=(0.95, 0.9, 0.98))
    assert below.caution.startswith("about 95% (90 to 98) was to be expected of images like the")
    assert not named(probabilities=right, expected=(0.75, 0.7, 0.8)).caution
    assert not named(probabilities=right).caution
    assert "was to be expected" in evaluation_page(below, {})
    assert below.to_json()["expected"] == (0.95, 0.9, 0.98)


def test_probabilities_that_match_on_average_only_are_not_called_right() -> None:
    """Half of them far too high, half far too low: the mean is right, and none of them is."""
    sure = np.repeat([0.98, 0.62], 50)
    right = [0] * 40 + [1] * 10 + [0] * 40 + [1] * 10  # 80% of either half
    truth, chances = np.array(right), np.stack([sure, 1 - sure], axis=1)
    e = made(2, truth=truth, probabilities=chances, samples=["s"] * 100)
    assert e.calibration_error == pytest.approx(0.18)
    assert summary(e).endswith(
        "Its probabilities match its accuracy on average, 80.0%, but not one by one: the "
        "calibration error is 18.0%."
    )
    sure[:] = 0.83
    e = made(2, truth=truth, probabilities=np.stack([sure, 1 - sure], 1), samples=["s"] * 100)
    assert summary(e).endswith("Its probabilities match its accuracy: 83.0% on average.")
    sure[:] = np.repeat([0.88, 0.72], 50)  # 8% off
    e = made(2, truth=truth, probabilities=np.stack([sure, 1 - sure], 1), samples=["s"] * 100)
    assert "but not one by one: the calibration error is 8.0%" in summary(e)


def test_names_of_folders_are_written_with_spaces_unless_that_would_mix_them_up() -> None:
    assert made(2, classes=["a_b", "_"]).names == ["a b", "_"]
    assert made(2, classes=["a_b", "a b"]).names == ["a_b", "a b"]


# --------------------------------------------------------------------------- thumbnails


def test_thumbnails_are_upright_squares_of_the_middle() -> None:
    image = Image.new("RGB", (300, 100), "blue")
    image.paste("red", (0, 0, 150, 100))
    notes = Image.Exif()
    notes[0x0112] = 6  # to be turned by a quarter, clockwise: left becomes the top
    buffer = io.BytesIO()
    image.save(buffer, "jpeg", exif=notes, quality=95)
    content = base64.b64decode(thumbnail(buffer.getvalue()).split(",")[1])
    small = Image.open(io.BytesIO(content))
    assert small.size == (SIDE, SIDE)
    assert not small.getexif()
    top, bottom = small.getpixel((SIDE // 2, 5)), small.getpixel((SIDE // 2, SIDE - 5))
    assert isinstance(top, tuple)
    assert isinstance(bottom, tuple)
    assert top[0] > 200 > 60 > bottom[0]


def test_an_image_that_has_gone_is_a_gap_on_the_page() -> None:
    def read(row: int) -> bytes:
        return b"" if row == e.wrong[0] else picture()

    e = made()
    found = thumbnails(pictured(e), read)
    assert set(pictured(e)) - set(found) == {e.wrong[0]}
    assert 'class="none" role="img"' in evaluation_page(e, found)


# --------------------------------------------------------------------------- the command

COLOUR = {"cat": (200, 20, 20), "dax": (20, 200, 20), "emu": (20, 20, 200)}


@pytest.fixture(autouse=True)
def colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """All encoders are those of the tests."""
    monkeypatch.setattr(f"{REMEMBERED}.make_encoder", lambda *_, **__: Colours())


@pytest.fixture
def images(tmp_path: Path) -> Path:
    root = tmp_path / "photos" / "test"
    for name, colour in COLOUR.items():
        for number in range(4):
            save(root / name / f"{number}.png", tuple(c + number for c in colour))
    save(root / "dax" / "odd.png", COLOUR["emu"])
    return root


@pytest.fixture
def classifier() -> FrugalClassifier:
    clf = FrugalClassifier("gaussian-diagonal", "nearest-mean")
    rng = np.random.default_rng(0)
    for names in (["cat"], ["dax", "emu"]):
        y = np.repeat(names, 10)
        clf.partial_fit(np.array([COLOUR[name] for name in y]) + rng.normal(size=(len(y), 3)), y)
    clf.encoder_ = Colours().identity
    return clf


@pytest.fixture
def file(classifier: FrugalClassifier, tmp_path: Path) -> Path:
    classifier.save(tmp_path / "birds.frugal")
    return tmp_path / "birds.frugal"


def test_the_command_prints_the_scores_and_writes_the_page(
    file: Path, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (images / "cat" / "broken.png").write_bytes(b"nothing")
    save(images / "gnu" / "1.png", 5)
    output = tmp_path / "report.html"
    assert main(["evaluate", str(file), str(images), "-o", str(output)]) == 0
    printed = capsys.readouterr().out
    assert "13 images of 3 classes" in printed
    assert re.search(r"accuracy +│ 92.3% \(66.7% to 98.6%\)", printed)
    assert re.search(r"task 2 +│ +88.9%", printed)
    assert "  dax mistaken for emu: 1 of 5" in printed
    assert "left out: class 'gnu', which the classifier does not know (1)" in printed
    assert "left out as unreadable: 1 image\n" in printed
    assert printed.splitlines()[-1] == f"written: {output}"
    page = Page(output.read_text("utf-8"))
    assert "cat/broken.png: it is in no known format of images" in page.text
    assert "dax/odd.png" in page.values("title")
    assert "colours, weights 0" in page.text


def test_json_is_all_that_is_printed(
    file: Path, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "report.html"
    assert main(["evaluate", str(file), str(images), "-o", str(output), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["accuracy"] == pytest.approx(12 / 13)
    assert content["wrong"][0]["sample"] == "dax/odd.png"
    assert content["confused"] == [{"truth": "dax", "taken_for": "emu", "count": 1, "of": 5}]
    assert content["file_size"] == file.stat().st_size
    assert main(["evaluate", str(file), str(images), "-o", str(output), "--quiet"]) == 0
    assert capsys.readouterr().out == ""


def test_a_zip_archive_gives_the_same(file: Path, images: Path, tmp_path: Path) -> None:
    archive = Path(shutil.make_archive(str(tmp_path / "packed"), "zip", images))
    output = tmp_path / "report.html"
    one, other = (evaluate(file, path, output) for path in (images, archive))
    np.testing.assert_array_equal(one.probabilities, other.probabilities)
    assert one.samples == other.samples
    assert Page(output.read_text("utf-8")).values("src")


def feature_file(path: Path, encoder: dict[str, Any] | None = None, width: int = 3) -> Path:
    y = np.repeat(list(COLOUR), 4)
    x = np.array([COLOUR[name] for name in y], np.float32)
    x = np.pad(x, ((0, 0), (0, width - 3)))
    x[0] = x[-1]  # a cat that looks like an emu
    write_features(path, Features("f", x, y, x, y, None, encoder))
    return path


def test_features_are_evaluated_without_pictures(file: Path, tmp_path: Path) -> None:
    output = tmp_path / "report.html"
    e = evaluate(file, feature_file(tmp_path / "f.npz"), output)
    assert e.accuracy == pytest.approx(11 / 12)
    page = Page(output.read_text("utf-8"))
    assert not page.values("src")
    assert "row of x_test" in page.text


def test_labels_that_are_numbers_are_matched_with_folders(tmp_path: Path) -> None:
    clf = FrugalClassifier("gaussian-diagonal", "nearest-mean")
    clf.fit([[200, 20, 20], [201, 20, 20], [20, 20, 200], [20, 20, 201]], [7, 7, 8, 8])
    clf.encoder_ = Colours().identity
    clf.save(tmp_path / "numbers.frugal")
    save(tmp_path / "set" / "7" / "a.png", (200, 20, 20))
    save(tmp_path / "set" / "8" / "a.png", (20, 20, 200))
    e = evaluate(tmp_path / "numbers.frugal", tmp_path / "set", tmp_path / "r.html")
    assert (e.classes, e.accuracy) == (["7", "8"], 1.0)


def test_what_cannot_be_evaluated_is_refused_and_nothing_written(
    classifier: FrugalClassifier, file: Path, images: Path, tmp_path: Path
) -> None:
    output = tmp_path / "report.html"

    def refused(message: str, path: Path, file: Path = file) -> None:
        with pytest.raises(InputError, match=message):
            evaluate(file, path, output)
        assert not output.exists()

    refused("nowhere: there is no such file or folder", tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    refused("empty: no images in it", tmp_path / "empty")
    shutil.copytree(images, tmp_path / "more" / "mine")
    refused(f"knows none of its 3 classes.*folders: give {tmp_path / 'more'}", tmp_path / "more")
    save(tmp_path / "others" / "emus" / "1.png")
    refused("such as 'emus'. Did you mean 'emu'. Known: 'cat', 'dax', 'emu'", tmp_path / "others")
    (tmp_path / "dark" / "cat").mkdir(parents=True)
    (tmp_path / "dark" / "cat" / "1.png").write_bytes(b"")
    refused(r"no image in it can be read, such as cat/1.png \(the file is empty", tmp_path / "dark")
    other = feature_file(tmp_path / "other.npz", {"encoder": "colours", "weights": "1"})
    refused("other.npz does not fit .*: weights differ", other)
    refused(
        "features of 5 numbers.*learned from features of 3",
        feature_file(tmp_path / "w.npz", width=5),
    )
    with pytest.raises(InputError, match="has the ending .xlsx; expected .html or .htm"):
        evaluate(file, images, tmp_path / "r.xlsx")
    before = file.read_bytes()
    with pytest.raises(InputError, match="is what is to be evaluated; give another --output"):
        evaluate(file, images, file)
    assert file.read_bytes() == before
    with pytest.raises(MemoryFileError, match="no such file"):
        evaluate(tmp_path / "none.frugal", images, output)

    changed = tmp_path / "changed.frugal"
    for made_by, message in (
        ({"encoder": "colours", "weights": "2"}, "does not fit .*: weights differ"),
        ({"encoder": "onnx", "model": "mine"}, "which model is its onnx. Give --model"),
    ):
        classifier.encoder_ = made_by
        classifier.save(changed)
        refused(message, images, changed)


def test_a_classifier_that_does_not_name_its_encoder_takes_features_alone(
    classifier: FrugalClassifier, images: Path, tmp_path: Path
) -> None:
    classifier.encoder_ = None
    file, output = tmp_path / "unnamed.frugal", tmp_path / "report.html"
    classifier.save(file)
    with pytest.raises(InputError, match="was taught features of an unknown encoder"):
        evaluate(file, images, output)
    assert not output.exists()
    assert evaluate(file, feature_file(tmp_path / "f.npz"), output).accuracy > 0.5


def test_an_identity_leads_back_to_its_encoder(
    clip_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{REMEMBERED}.make_encoder", make_encoder)
    file = Path("birds.frugal")
    for made_with in (
        {"name": "efficientnet", "size": 64},
        {"name": "efficientnet", "model": "lite2"},
        {"name": "transformers", "model": clip_folder},
    ):
        told = json.loads(json.dumps(make_encoder(**made_with).identity))  # as files keep it
        model = str(clip_folder) if made_with["name"] == "transformers" else None
        made, _ = load_encoder(told, Choice(model=model), file)
        assert made.identity == told
        with pytest.raises(InputError, match="does not fit birds.frugal: weights differ"):
            load_encoder(told | {"weights": "0"}, Choice(model=model), file)
    with pytest.raises(InputError, match="model is 'here'. Choices: 'lite0'"):
        load_encoder({"encoder": "efficientnet"}, Choice(model="here"), file)
