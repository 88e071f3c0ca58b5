from __future__ import annotations

import copy
import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from frugalvae.console import listening
from frugalvae.errors import DeviceError, InputError
from frugalvae.images.feature_file import Features
from frugalvae.parts.registry import settings_of
from frugalvae_lab.encoders import ENCODERS, make_encoder, resnet18
from frugalvae_lab.encoders.resnet18 import (
    ResNet18,
    ResNet18Encoder,
    colour_statistics,
    first_task_features,
    mirrored,
    moved,
)
from frugalvae_lab.images.dataset import Images, digit_images

TINY: dict[str, Any] = {"width": 8, "epochs": 2, "batch_size": 16, "crop": 1}


@pytest.fixture(scope="module")
def digits() -> Images:
    return digit_images()


@pytest.fixture(scope="module")
def few(digits: Images) -> Images:
    """Some forty images of each split."""
    return replace(
        digits,
        x_train=digits.x_train[:60],
        y_train=digits.y_train[:60],
        x_test=digits.x_test[:20],
        y_test=digits.y_test[:20],
    )


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def assert_same(features: np.ndarray, expected: np.ndarray) -> None:
    """But for rounding, which the largest feature decides."""
    np.testing.assert_allclose(features, expected, rtol=0, atol=1e-5 * expected.max())


# --------------------------------------------------------------------------- the network


def parameters_by_hand(width: int) -> int:
    """Kernels, and scale and shift of each batch normalisation."""
    total = 3 * width * 9 + 2 * width
    for n_in, n_out in ((1, 1), (1, 2), (2, 4), (4, 8)):
        n_in, n_out = n_in * width, n_out * width
        total += 9 * n_in * n_out + 3 * 9 * n_out * n_out + 4 * 2 * n_out
        total += (n_in * n_out + 2 * n_out) if n_in != n_out else 0
    return total


@pytest.mark.parametrize(("width", "count"), [(64, 11_168_832), (8, None)])
def test_it_has_the_parameters_of_a_resnet_18(width: int, count: int | None) -> None:
    real = sum(p.numel() for p in ResNet18(width, rng=seeded()).parameters())
    assert real == parameters_by_hand(width)
    assert count in (real, None)


def test_only_the_later_stages_halve_the_image() -> None:
    x = torch.zeros(2, 3, 32, 32)
    sides = []
    for layer in ResNet18(8, rng=seeded()):
        x = layer(x)
        sides.append(x.shape[-1])
    stem, blocks, head = [32] * 3, [32, 32, 16, 16, 8, 8, 4, 4], [1, 64]
    assert sides == stem + blocks + head


def by_hand(state: dict[str, Tensor], x: Tensor) -> Tensor:
    """A ResNet-18 in functions, on the values of a real one."""
    values = iter([value for key, value in state.items() if "num_batches" not in key])

    def convolution(x: Tensor, stride: int = 1) -> Tensor:
        kernel, scale, shift, mean, variance = (next(values) for _ in range(5))
        x = functional.conv2d(x, kernel, stride=stride, padding=kernel.shape[-1] // 2)
        x = (x - mean[:, None, None]) / (variance[:, None, None] + 1e-5).sqrt()
        return x * scale[:, None, None] + shift[:, None, None]

    x = convolution(x).relu()
    for stage in range(4):
        for block in range(2):
            stride = 2 if stage and not block else 1
            out = convolution(convolution(x, stride).relu())
            x = (out + (convolution(x, stride) if stride == 2 else x)).relu()
    return x.mean(dim=(2, 3))


def test_it_computes_what_a_resnet_18_computes() -> None:
    rng = seeded()
    net = ResNet18(8, rng=rng)
    for _ in range(3):
        net(torch.randn(8, 3, 12, 12, generator=rng))  # running means are no longer zero
    x = torch.randn(5, 3, 12, 12, generator=rng)
    torch.testing.assert_close(net.eval()(x), by_hand(net.state_dict(), x))


def test_initial_values_are_he_s() -> None:
    weight = ResNet18(32, rng=seeded()).get_submodule("9").get_submodule("path.0").weight
    assert weight.shape == (256, 128, 3, 3)
    assert math.isclose(float(weight.detach().std()), math.sqrt(2 / (256 * 9)), rel_tol=0.02)


# --------------------------------------------------------------------------- what is done to images


def test_colour_statistics_are_numpy_s(digits: Images) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (7, 5, 4, 3), np.uint8)
    mean, std = colour_statistics(torch.as_tensor(pixels).permute(0, 3, 1, 2))
    np.testing.assert_allclose(mean, pixels.astype(float).mean(axis=(0, 1, 2)), rtol=1e-6)
    np.testing.assert_allclose(std, pixels.astype(float).std(axis=(0, 1, 2)), rtol=1e-6)


def test_moved_images_are_crops_of_the_padded_ones() -> None:
    pixels = np.random.default_rng(0).normal(size=(40, 3, 6, 5)).astype(np.float32)
    out = moved(torch.as_tensor(pixels), 2, seeded()).numpy()
    down, right = torch.randint(5, (2, 40, 1), generator=seeded())[..., 0].numpy()
    assert set(down) == set(right) == {0, 1, 2, 3, 4}
    for image, crop, top, left in zip(pixels, out, down, right, strict=True):
        padded = np.zeros((3, 10, 9), np.float32)
        padded[:, 2:8, 2:7] = image
        np.testing.assert_array_equal(crop, padded[:, top : top + 6, left : left + 5])


def test_mirrored_images_are_the_image_or_its_mirror_image() -> None:
    pixels = torch.randn(40, 3, 4, 4, generator=seeded())
    out = mirrored(pixels, seeded())
    flipped = torch.tensor([bool((a != b).any()) for a, b in zip(pixels, out, strict=True)])
    assert 8 < int(flipped.sum()) < 32
    assert torch.equal(out[flipped], pixels[flipped].flip(3))


@pytest.mark.parametrize("flip", [True, False])
def test_flips_can_be_switched_off(
    few: Images, flip: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    monkeypatch.setattr(resnet18, "mirrored", lambda x, _: calls.append(len(x)) or x)
    ResNet18Encoder(**TINY, flip=flip).fit(few.x_train, few.y_train, seeded())
    assert sum(calls) == (2 * 60 if flip else 0)


# --------------------------------------------------------------------------- training


def test_the_learning_rate_falls_to_zero_as_a_cosine(
    few: Images, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = []

    class Spy(torch.optim.SGD):
        def step(self, *args: Any, **kwargs: Any) -> Any:
            rates.append(self.param_groups[0]["lr"])
            assert self.param_groups[0]["momentum"] == 0.8
            assert self.param_groups[0]["weight_decay"] == 1e-3
            return super().step(*args, **kwargs)

    monkeypatch.setattr(torch.optim, "SGD", Spy)
    encoder = ResNet18Encoder(**TINY, learning_rate=0.2, momentum=0.8, weight_decay=1e-3)
    encoder.fit(few.x_train, few.y_train, seeded())
    steps = 2 * 4
    expected = [0.1 * (1 + math.cos(math.pi * step / steps)) for step in range(steps)]
    np.testing.assert_allclose(rates, expected, atol=1e-12)


def test_the_same_seed_gives_the_same_features_and_another_others(few: Images) -> None:
    first, same, other = (
        first_task_features(few, range(5), ResNet18Encoder(**TINY), seed).x_test
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, same)
    assert not np.allclose(first, other)


def test_global_randomness_is_neither_used_nor_disturbed(few: Images) -> None:
    before = torch.random.get_rng_state()
    first_task_features(few, range(5), ResNet18Encoder(**TINY), seed=0)
    assert torch.equal(before, torch.random.get_rng_state())


def test_fitting_again_starts_anew_and_leaves_no_gradients(few: Images) -> None:
    encoder = ResNet18Encoder(**TINY).fit(few.x_train[:30], few.y_train[:30], seeded(1))
    encoder.fit(few.x_train, few.y_train, seeded())
    fresh = ResNet18Encoder(**TINY).fit(few.x_train, few.y_train, seeded())
    np.testing.assert_array_equal(encoder.encode(few.x_test), fresh.encode(few.x_test))
    assert all(p.grad is None for p in encoder.body_.parameters())


def test_encoding_changes_nothing_and_does_not_depend_on_company(few: Images) -> None:
    encoder = ResNet18Encoder(**TINY).fit(few.x_train, few.y_train, seeded())
    state = copy.deepcopy(encoder.body_.state_dict())
    together = encoder.encode(few.x_test)
    assert together.dtype == np.float32
    assert together.shape == (20, 64)
    alone = np.concatenate([encoder.encode(few.x_test[i : i + 1]) for i in range(20)])
    assert_same(together, alone)
    after = encoder.body_.state_dict()
    assert all(torch.equal(state[key], after[key]) for key in state)


def test_many_images_are_encoded_in_parts(few: Images, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = ResNet18Encoder(**TINY).fit(few.x_train, few.y_train, seeded())
    whole = encoder.encode(few.x_train)
    monkeypatch.setattr(resnet18, "ENCODE_BATCH", 7)
    assert_same(encoder.encode(few.x_train), whole)


def test_images_of_one_colour_are_no_trouble() -> None:
    grey = np.full((8, 8, 8, 3), 100, np.uint8)
    encoder = ResNet18Encoder(**TINY).fit(grey, [0, 1] * 4, seeded())
    assert np.isfinite(encoder.encode(grey)).all()


@pytest.mark.parametrize("size", [1, 5, 9])
def test_images_of_any_size_and_batches_of_any_rest(size: int) -> None:
    """Five images in batches of four: none is left alone, which could not be normalised."""
    pixels = np.random.default_rng(0).integers(0, 256, (5, size, size, 3), np.uint8)
    encoder = ResNet18Encoder(width=8, epochs=1, batch_size=4)
    assert np.isfinite(encoder.fit(pixels, list("ababa"), seeded()).encode(pixels)).all()


def test_training_tells_its_progress(few: Images) -> None:
    events: list[tuple[str, int, int]] = []
    with listening(lambda *event: events.append(event)):
        first_task_features(few, range(5), ResNet18Encoder(**TINY), seed=0)
    assert ("training the encoder", 2, 2) in events
    assert ("encoding images", 1, 1) in events


# --------------------------------------------------------------------------- the first task


def test_nothing_but_the_first_task_s_training_images_matters(few: Images) -> None:
    later, noise = few.y_train >= 5, np.random.default_rng(0)
    x_train, x_test = few.x_train.copy(), noise.integers(0, 256, few.x_test.shape, np.uint8)
    x_train[later] = noise.integers(0, 256, x_train[later].shape, np.uint8)
    changed = replace(few, x_train=x_train, x_test=x_test)
    one, other = ResNet18Encoder(**TINY), ResNet18Encoder(**TINY)
    features = first_task_features(few, [0, 1, 2, 3, 4], one, seed=0)
    twin = first_task_features(changed, [4, 1, 3, 2, 0], other, seed=0)  # in any order
    states = one.body_.state_dict(), other.body_.state_dict()
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])
    assert_same(features.x_train[~later], twin.x_train[~later])
    assert not np.allclose(features.x_train[later], twin.x_train[later])


def test_features_are_those_of_all_images_in_their_order(few: Images) -> None:
    encoder = ResNet18Encoder(**TINY)
    features = first_task_features(few, range(5), encoder, seed=0)
    assert isinstance(features, Features)
    assert features.name == "digits-resnet18"
    assert features.text is None
    np.testing.assert_array_equal(features.x_train, encoder.encode(few.x_train))
    np.testing.assert_array_equal(features.x_test, encoder.encode(few.x_test))
    np.testing.assert_array_equal(features.y_test, few.y_test)


def test_classes_may_have_names(few: Images) -> None:
    names = np.array([f"digit {number}" for number in range(10)])
    named = replace(few, y_train=names[few.y_train], y_test=names[few.y_test])
    features = first_task_features(named, names[:5], ResNet18Encoder(**TINY), seed=0)
    numbered = first_task_features(few, range(5), ResNet18Encoder(**TINY), seed=0)
    np.testing.assert_array_equal(features.x_test, numbered.x_test)


def nearest_mean_accuracy(data: Features, classes: range) -> float:
    test = np.isin(data.y_test, classes)
    means = np.stack([data.x_train[data.y_train == label].mean(axis=0) for label in classes])
    distances = ((data.x_test[test][:, None] - means) ** 2).sum(axis=2)
    return float(np.mean(distances.argmin(axis=1) == data.y_test[test]))


def test_it_learns_to_tell_the_first_task_s_digits_apart(digits: Images) -> None:
    """Well above its random start, by the class means of what it has never seen."""
    settings: dict[str, Any] = {"batch_size": 32, "learning_rate": 0.03, "crop": 1, "flip": False}
    trained, untrained = (
        nearest_mean_accuracy(
            first_task_features(
                digits, range(5), ResNet18Encoder(width=8, epochs=epochs, **settings), seed=0
            ),
            range(5),
        )
        for epochs in (6, 0)
    )
    assert trained > 0.9
    assert trained > untrained + 0.2


# --------------------------------------------------------------------------- mistakes and settings


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (
            np.zeros((4, 8, 8), np.uint8),
            [0, 1, 0, 1],
            r"images are uint8 of shape \(4, 8, 8\); exp",
        ),
        (np.zeros((4, 8, 8, 3)), [0, 1, 0, 1], "images are float64 of shape"),
        (np.zeros((4, 8, 8, 1), np.uint8), [0, 1, 0, 1], r"expected uint8 of shape \(n, size"),
        (np.zeros((0, 8, 8, 3), np.uint8), [], r"of shape \(0, 8, 8, 3\)"),
        (np.zeros((4, 8, 8, 3), np.uint8), [0, 1], "4 images with 2 labels of 2 classes; expected"),
        (np.zeros((4, 8, 8, 3), np.uint8), [7] * 4, "of 1 classes; .* two classes at least"),
    ],
)
def test_images_that_cannot_be_used_are_refused(
    images: np.ndarray, labels: list[int], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        ResNet18Encoder(**TINY).fit(images, labels, seeded())


def test_an_encoder_that_was_never_trained_is_refused(few: Images) -> None:
    with pytest.raises(InputError, match=r"learned nothing yet; call fit\(images, labels, rng\)"):
        ResNet18Encoder().encode(few.x_test)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("epochs", -1),
        ("epochs", 1.5),
        ("batch_size", 1),
        ("learning_rate", 0),
        ("momentum", 2),
        ("weight_decay", -1),
        ("crop", -1),
        ("flip", "yes"),
        ("width", 0),
    ],
)
def test_settings_are_checked(setting: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"{setting} is {value!r}"):
        ResNet18Encoder(**{setting: value})


@pytest.mark.parametrize("width", [1, 2, 4, 7])
def test_widths_at_which_pytorch_corrupts_memory_are_refused(width: int) -> None:
    message = f"width is {width}; expected a whole number, from 8 to 512"
    with pytest.raises(InputError, match=message):
        ResNet18Encoder(width=width)
    with pytest.raises(InputError, match=message):
        ResNet18(width, rng=seeded())


def test_settings_can_be_read_back() -> None:
    settings = settings_of(make_encoder("resnet18", epochs=10, flip=False))
    json.dumps(settings)
    assert settings == {
        "epochs": 10,
        "batch_size": 128,
        "learning_rate": 0.1,
        "momentum": 0.9,
        "weight_decay": 5e-4,
        "crop": 4,
        "flip": False,
        "width": 64,
        "device": None,
    }
    assert list(ENCODERS) == ["resnet18"]


def test_a_copy_is_of_its_own(few: Images) -> None:
    encoder = ResNet18Encoder(**TINY).fit(few.x_train, few.y_train, seeded())
    before = encoder.encode(few.x_test)
    twin = copy.deepcopy(encoder)
    for parameter in twin.body_.parameters():
        nn.init.zeros_(parameter)
    np.testing.assert_array_equal(encoder.encode(few.x_test), before)


def test_a_device_that_is_not_there_is_refused_by_encoders_too() -> None:
    images = np.zeros((4, 8, 8, 3), np.uint8)
    with pytest.raises(DeviceError, match="device is 'nowhere', which cannot be used here"):
        ResNet18Encoder(device="nowhere").fit(images, [0, 0, 1, 1], torch.Generator())
