"""Photographs in Python: from a folder to names, by one call each."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from frugalvae import FrugalClassifier, PhotoClassifier
from frugalvae.cli.main import main
from frugalvae.encoders.efficientnet import EfficientNetEncoder
from frugalvae.errors import InputError
from frugalvae.images.photographs import encode
from tests.colours import Colours
from tests.tool import Encoders, Tool, paint


@pytest.fixture
def photos(tmp_path: Path, encoders: Encoders) -> Path:
    return paint(tmp_path / "photos", "cat", "dax", "emu")


def pictures(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*"))


def names(paths: list[Path]) -> list[str]:
    return [path.parent.name for path in paths]


def test_a_folder_is_learned_and_its_photographs_are_named(photos: Path) -> None:
    classifier, paths = PhotoClassifier().learn(photos), pictures(photos)
    assert classifier.classes_.tolist() == ["cat", "dax", "emu"]
    assert classifier.predict(paths).tolist() == names(paths)


def test_paths_images_and_arrays_are_the_same_photograph(photos: Path) -> None:
    classifier, path = PhotoClassifier().learn(photos), pictures(photos)[0]
    with Image.open(path) as image:
        image.load()
    array = np.asarray(image.convert("RGB"))
    expected = classifier.encode(path)
    assert expected.shape == (1, classifier.n_features_in_)
    for given in (str(path), image, array, [path], (image,), array[None], iter([str(path)])):
        np.testing.assert_allclose(classifier.encode(given), expected, atol=1e-5)
    assert classifier.encode([path, image, array]).shape[0] == 3


def test_only_new_classes_are_learned_later(photos: Path, tmp_path: Path) -> None:
    classifier = PhotoClassifier().learn(photos)
    before = classifier.model_
    assert classifier.learn(photos).model_ is before  # nothing new
    more = paint(tmp_path / "more", "cat", "fox")
    classifier.learn(more)
    assert classifier.classes_.tolist() == ["cat", "dax", "emu", "fox"]
    assert classifier.task_of_class_.tolist() == [0, 0, 0, 1]
    counts = dict(zip(classifier.classes_.tolist(), classifier.n_samples_of_class_, strict=True))
    assert counts["cat"] == len(list((photos / "cat").iterdir()))


def test_the_tool_goes_on_with_what_python_has_taught_and_the_other_way_round(
    photos: Path, tmp_path: Path
) -> None:
    file, more = tmp_path / "both.frugal", paint(tmp_path / "more", "fox")
    PhotoClassifier().learn(photos).save(file)
    assert main(["learn", str(file), str(more)]) == 0
    loaded, paths = PhotoClassifier.load(file), [*pictures(photos), *pictures(more)]
    assert loaded.predict(paths).tolist() == names(paths)
    loaded.learn(paint(tmp_path / "most", "gnu")).save(file)
    assert main(["predict", str(file), str(paths[0])]) == 0


def test_the_encoder_is_loaded_once_however_often_is_asked(
    photos: Path, encoders: Encoders
) -> None:
    classifier, path = PhotoClassifier().learn(photos), pictures(photos)[0]
    made = len(encoders.made)
    for _ in range(5):
        classifier.predict(path)
    assert len(encoders.made) == made


def test_a_classifier_that_has_seen_photographs_can_be_pickled(photos: Path) -> None:
    classifier, paths = PhotoClassifier().learn(photos), pictures(photos)
    again = pickle.loads(pickle.dumps(classifier))
    assert again.predict(paths).tolist() == names(paths)


def test_what_cannot_be_read_is_named_and_changes_nothing(photos: Path) -> None:
    classifier = PhotoClassifier().learn(photos)
    wrong = photos / "cat" / "wrong.jpg"
    wrong.write_text("no picture")
    with pytest.raises(InputError, match=r"1 of 2 photographs cannot be read.*wrong\.jpg: "):
        classifier.predict([pictures(photos)[0], wrong])
    with pytest.raises(InputError, match=r"number 0: an array of shape \(3, 3\) and type float64"):
        classifier.predict(np.zeros((3, 3)))
    with pytest.raises(InputError, match="no photographs were given"):
        classifier.predict([])
    with pytest.raises(InputError, match="there is no such file or folder"):
        classifier.learn(photos / "nowhere")
    assert classifier.n_tasks_ == 1
    fresh = PhotoClassifier()
    with pytest.raises(InputError, match=r"wrong\.jpg"):
        fresh.learn(photos)
    assert not hasattr(fresh.classifier, "model_")
    assert not hasattr(fresh, "left_out_")


def test_what_cannot_be_read_is_left_out_and_told_if_that_is_wanted(
    photos: Path, tool: Tool, caplog: pytest.LogCaptureFixture
) -> None:
    (photos / "dax" / "wrong.jpg").write_text("no image")
    (photos / "gnu").mkdir()
    (photos / "gnu" / "empty.png").touch()
    (photos / "notes.txt").write_text("notes")
    with pytest.raises(InputError, match="; strict=False leaves out what cannot be read"):
        PhotoClassifier().learn(photos)
    classifier = PhotoClassifier().learn(photos, strict=False)
    assert classifier.classes_.tolist() == ["cat", "dax", "emu"]
    assert classifier.n_samples_of_class_.tolist() == [6, 6, 6]
    told = tool.json("learn", photos)
    assert classifier.left_out_ == {name: told[name] for name in classifier.left_out_}
    assert set(classifier.left_out_["unreadable"]) == {"dax/wrong.jpg", "gnu/empty.png"}
    assert classifier.left_out_["left_out"] == ["gnu"]
    assert "left out as unreadable" in caplog.text
    assert "dax/wrong.jpg" in caplog.text
    before = classifier.model_
    with pytest.raises(InputError, match="no image of a new class can be read"):
        classifier.learn(photos, strict=False)
    assert classifier.model_ is before


def test_features_of_unknown_origin_cannot_be_asked_with_photographs(photos: Path) -> None:
    features = FrugalClassifier().fit(np.eye(3), ["a", "b", "c"])
    classifier = PhotoClassifier(classifier=features)
    with pytest.raises(InputError, match="was taught features of an unknown encoder"):
        classifier.predict(pictures(photos))
    features.encoder_ = {**Colours().identity, "given": {"name": "efficientnet", "settings": {}}}
    classifier.encode(pictures(photos))


def test_what_a_classifier_can_do_one_of_photographs_can_too(photos: Path, tmp_path: Path) -> None:
    classifier, paths = PhotoClassifier().learn(photos), pictures(photos)
    for method in ("predict_log_proba", "familiarity", "is_known", "is_reliable", "predict_set"):
        found = getattr(classifier, method)(paths)
        expected = getattr(classifier.classifier, method)(classifier.encode(paths))
        assert (
            list(found) == list(expected) if method == "predict_set" else (found == expected).all()
        )
    assert classifier.rename("cat", "tiger") is classifier
    assert classifier.forget("dax") == []
    other = PhotoClassifier().learn(paint(tmp_path / "more", "fox"))
    assert classifier.merge(other).classes_.tolist() == ["emu", "fox", "tiger"]
    assert {"learn", "classes_", "memory_report"} <= set(dir(classifier))
    assert re.match(r"PhotoClassifier\(.*FrugalClassifier", repr(classifier))
    assert not hasattr(classifier, "absent")


@pytest.mark.parametrize(("side", "sizes"), [(256, [4, 2]), (600, [3, 3]), (1024, [1] * 6)])
def test_of_large_images_fewer_are_encoded_at_a_time(side: int, sizes: list[int]) -> None:
    """Four of 512 x 512 are as many numbers as one of 1024 x 1024."""
    seen = list[int]()

    class Counting(Colours):
        def encode(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
            seen.append(len(batch))
            return np.zeros((len(batch), self.dim), np.float32)

    encode(Counting(), [np.zeros((3, side, side), "f4")] * 6, batch_size=4)
    assert seen == sizes


def test_no_file_makes_images_of_any_size() -> None:
    with pytest.raises(InputError, match="size is 2048; expected a whole number, from 32 to 1024"):
        EfficientNetEncoder(size=2048)
