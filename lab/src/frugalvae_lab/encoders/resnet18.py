"""A small-image ResNet-18, trained on the first task and frozen from then on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad

from frugalvae.console import track
from frugalvae.errors import InputError, check_choice, check_number
from frugalvae.images.feature_file import Features
from frugalvae.maths.arrays import find_device
from frugalvae.parts.tensors import batch_count, batches, linear
from frugalvae_lab.images.dataset import Images

ENCODE_BATCH = 256  # images encoded at once
#: Channels of a layer. With fewer, oneDNN with AVX2 but without AVX-512 writes beyond the gradient
#: of a 1 x 1 convolution: the interpreter dies, or goes on with damaged memory (PyTorch 2.13).
LEAST_WIDTH = 8


class Block(nn.Module):
    """Two 3 x 3 convolutions beside a shortcut; the first may halve the image's sides."""

    def __init__(self, n_in: int, n_out: int, stride: int, rng: torch.Generator) -> None:
        super().__init__()
        self.path = nn.Sequential(
            *convolution(n_in, n_out, 3, stride, rng),
            nn.ReLU(inplace=True),
            *convolution(n_out, n_out, 3, 1, rng),
        )
        same = n_in == n_out and stride == 1
        self.shortcut = nn.Sequential(*([] if same else convolution(n_in, n_out, 1, stride, rng)))

    def forward(self, x: Tensor) -> Tensor:
        """Both ways added."""
        both: Tensor = self.path(x) + self.shortcut(x)
        return both.relu()


class ResNet18(nn.Sequential):
    """ResNet-18 for small images: a 3 x 3 stem that keeps their size, and no pooling after it.

    Gives the average over the image, ``8 * width`` numbers.

    References
    ----------
    He, Zhang, Ren, Sun: "Deep Residual Learning for Image Recognition", CVPR 2016.

    Examples
    --------
    >>> net = ResNet18(width=8, rng=torch.Generator().manual_seed(0))
    >>> net(torch.zeros(2, 3, 16, 16)).shape
    torch.Size([2, 64])
    """

    def __init__(self, width: int = 64, *, rng: torch.Generator) -> None:
        check_number("width", width, LEAST_WIDTH, 512, whole=True)
        stem = [*convolution(3, width, 3, 1, rng), nn.ReLU(inplace=True)]
        blocks = []
        for n_in, n_out, stride in ((1, 1, 1), (1, 2, 2), (2, 4, 2), (4, 8, 2)):
            blocks.append(Block(n_in * width, n_out * width, stride, rng))
            blocks.append(Block(n_out * width, n_out * width, 1, rng))
        super().__init__(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def convolution(
    n_in: int, n_out: int, size: int, stride: int, rng: torch.Generator
) -> list[nn.Module]:
    """A convolution with He's initial values, drawn from ``rng``, and batch normalisation."""
    layer = nn.Conv2d(n_in, n_out, size, stride, padding=size // 2, bias=False, device="meta")
    layer = layer.to_empty(device=rng.device)
    nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu", generator=rng)
    return [layer, nn.BatchNorm2d(n_out, device=rng.device)]


class ResNet18Encoder:
    """Trains a ResNet-18 with a linear classifier on top, drops that, and gives features.

    Epochs, batches and optimiser are by default those with which PyCIL trains the first
    task of its FeTrIL on CIFAR-100. Images are only moved and mirrored: PyCIL also changes
    their brightness and uses AutoAugment and cutout. What is missing around a moved image
    is the average colour, as in the network's own padding, where PyCIL's is black: on
    Omniglot, black ink on white, that gave 65 % in place of 45 % of held-out drawings
    (nearest mean, width 16, 10 epochs, one seed).

    Parameters
    ----------
    epochs, batch_size, learning_rate, momentum, weight_decay
        Of stochastic gradient descent; the learning rate falls to zero as a cosine.
    crop
        Images are moved at random by up to so many pixels on either axis.
    flip
        Whether half of the images are mirrored. Not for writing.
    width
        Channels of the stem, at least eight; a feature has eight times as many numbers.
    device
        Where to compute; ``None`` takes a GPU if there is one.

    Examples
    --------
    >>> rng = torch.Generator().manual_seed(0)
    >>> images = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 3), np.uint8)
    >>> encoder = ResNet18Encoder(epochs=1, width=8)
    >>> encoder.fit(images, [0, 0, 0, 1, 1, 1], rng).encode(images).shape
    (6, 64)
    """

    def __init__(
        self,
        *,
        epochs: int = 200,
        batch_size: int = 128,
        learning_rate: float = 0.1,
        momentum: float = 0.9,
        weight_decay: float = 5e-4,
        crop: int = 4,
        flip: bool = True,
        width: int = 64,
        device: str | None = None,
    ) -> None:
        check_number("epochs", epochs, 0, 100_000, whole=True)
        check_number("batch_size", batch_size, 4, 65_536, whole=True)  # none of one image
        check_number("learning_rate", learning_rate, 1e-12)
        check_number("momentum", momentum, 0, 1)
        check_number("weight_decay", weight_decay, 0)
        check_number("crop", crop, 0, 1_024, whole=True)
        check_choice("flip", flip, (True, False))
        check_number("width", width, LEAST_WIDTH, 512, whole=True)
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.crop = crop
        self.flip = flip
        self.width = width
        self.device = device

    def fit(
        self, images: NDArray[np.uint8], labels: Sequence[Any] | NDArray[Any], rng: torch.Generator
    ) -> ResNet18Encoder:
        """Learn to tell these images apart, from the start whatever was learned before."""
        classes, numbers = np.unique(np.asarray(labels), return_inverse=True)
        x, y = self._tensor(images), torch.as_tensor(numbers, device=self._device())
        if len(x) != len(y) or len(classes) < 2:
            raise InputError(
                f"{len(x)} images with {len(y)} labels of {len(classes)} classes; "
                "expected a label for each image, and two classes at least"
            )
        body = ResNet18(self.width, rng=rng)
        network = nn.Sequential(body, linear(8 * self.width, len(classes), rng))
        network.to(x.device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._train(network, x, y, rng)  # colours last in memory are faster on a CPU
        self.body_ = body.eval()
        return self

    def _train(self, network: nn.Module, x: Tensor, y: Tensor, rng: torch.Generator) -> None:
        mean, std = colour_statistics(x)
        self.mean_ = mean.view(3, 1, 1)
        self.std_ = std.view(3, 1, 1).clamp(min=1)  # all images may be of one colour
        optimiser = torch.optim.SGD(
            network.parameters(),
            self.learning_rate,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
        )
        steps = self.epochs * batch_count(len(x), self.batch_size)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(steps, 1))
        for _ in track(range(self.epochs), "training the encoder"):
            for chosen in batches(len(x), self.batch_size, rng):
                rows = chosen.to(x.device)
                batch = moved(self._normalised(x[rows]), self.crop, rng)
                batch = mirrored(batch, rng) if self.flip else batch
                loss = cross_entropy(network(batch), y[rows])
                optimiser.zero_grad(set_to_none=True)
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
                schedule.step()
        optimiser.zero_grad(set_to_none=True)  # or copies of the encoder would carry gradients

    def encode(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Features of images, shape (n, 8 * width)."""
        if not hasattr(self, "body_"):
            raise InputError("this encoder has learned nothing yet; call fit(images, labels, rng)")
        parts = range(0, len(images), ENCODE_BATCH)
        with torch.inference_mode():
            features = [
                self.body_(self._normalised(self._tensor(images[start : start + ENCODE_BATCH])))
                for start in track(parts, "encoding images")
            ]
        return torch.cat(features).cpu().numpy()

    def _normalised(self, x: Tensor) -> Tensor:
        """By mean and standard deviation of each colour in the training images."""
        return (x - self.mean_) / self.std_

    def _tensor(self, images: NDArray[np.uint8]) -> Tensor:
        """Images with colours first, (n, 3, size, size), where to compute."""
        if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] != 3 or not len(images):
            raise InputError(
                f"images are {images.dtype} of shape {images.shape}; "
                "expected uint8 of shape (n, size, size, 3)"
            )
        return torch.tensor(images, device=self._device()).permute(0, 3, 1, 2)

    def _device(self) -> torch.device:
        return find_device(self.device)


def colour_statistics(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each colour, (3,) each, of bytes (n, 3, size, size).

    From how often each of the 256 values occurs, so that no image is copied.

    >>> colour_statistics(torch.tensor([0, 0, 255, 2, 10, 255], dtype=torch.uint8).view(2, 3, 1, 1))
    (tensor([  1.,   5., 255.]), tensor([1., 5., 0.]))
    """
    counts = [torch.bincount(colour.flatten(), minlength=256) for colour in x.unbind(dim=1)]
    share = torch.stack(counts).double() / counts[0].sum()  # (3, 256)
    levels = torch.arange(256, device=x.device).double()
    mean = share @ levels
    variance = (share * (levels - mean[:, None]).square()).sum(dim=1)
    return mean.float(), variance.sqrt().float()


def moved(x: Tensor, most: int, rng: torch.Generator) -> Tensor:
    """Each image moved by up to ``most`` pixels on either axis; what is missing is zero.

    >>> moved(torch.ones(1, 1, 2, 2), 0, torch.Generator())
    tensor([[[[1., 1.],
              [1., 1.]]]])
    """
    count, _, height, width = x.shape
    shifts = torch.randint(2 * most + 1, (2, count, 1), generator=rng, device=rng.device)
    down, right = shifts.to(x.device)
    rows = down + torch.arange(height, device=x.device)  # (n, height)
    columns = right + torch.arange(width, device=x.device)  # (n, width)
    image = torch.arange(count, device=x.device)
    padded = pad(x, [most] * 4)
    crops = padded[image[:, None, None], :, rows[:, :, None], columns[:, None, :]]
    return crops.permute(0, 3, 1, 2)  # indexing put the colours last


def mirrored(x: Tensor, rng: torch.Generator) -> Tensor:
    """Each image or its mirror image, by chance."""
    chance = torch.rand(len(x), 1, 1, 1, generator=rng, device=rng.device)
    return torch.where(chance.to(x.device) < 0.5, x.flip(3), x)


def first_task_features(
    images: Images, first: Sequence[Any] | NDArray[Any], encoder: ResNet18Encoder, seed: int
) -> Features:
    """Features by an encoder that is trained here, on the first task's classes alone.

    Parameters
    ----------
    first
        Labels of the first task. No image of another class has any influence on the
        encoder, and no test image.
    encoder
        Is fitted, so that it can encode more images afterwards.
    seed
        Of its initial values, batches, crops and flips.
    """
    chosen = np.isin(images.y_train, np.asarray(first))
    rng = torch.Generator().manual_seed(seed)
    encoder.fit(images.x_train[chosen], images.y_train[chosen], rng)
    return Features(
        f"{images.name}-resnet18",
        encoder.encode(images.x_train),
        images.y_train,
        encoder.encode(images.x_test),
        images.y_test,
    )
