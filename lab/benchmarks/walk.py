"""Which planted mistakes does ``check`` find, look after look.

    FRUGALVAE_DATA=folder python -m lab.benchmarks.walk [--seeds 0 1]

Photographs are those of ``lab.benchmarks.birds``. Eight photographs of each of six classes
are right; sixteen mistakes are planted among them. After each look a person mends the mistakes that
were told: moves what is of a class here, takes away the rest, keeps what is tiny or blurred, and
what was told but is right. Printed are the mistakes and the right photographs that were told so
far, and how many test photographs a file names right: if it is taught the folder as it was, without
what the first look leaves out, and after each look.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image, ImageDraw, ImageFilter

from frugalvae.cli.main import main as frugalvae
from frugalvae.images.decode import decode
from lab.benchmarks.birds import photographs

CLASSES, RIGHT, LOOKS = 6, 8, ("first", "second", "third")


class Photograph(NamedTuple):
    """What is wrong with a photograph, if anything; and the class that it shows, if any."""

    mistake: str
    shows: str | None


class Tally(NamedTuple):
    """What was counted over all folders: by mistake, by mistake and look, and by what is taught."""

    planted: Counter[str]
    told: Counter[tuple[str, str]]
    named: dict[str, list[float]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=range(10))
    seeds, birds = parser.parse_args().seeds, photographs()
    tally = Tally(Counter(), Counter(), defaultdict(list))
    for seed in seeds if birds else ():
        with tempfile.TemporaryDirectory() as folder:
            walk(birds, Path(folder), random.Random(seed), tally)
    print(f"| {len(seeds)} folders | planted | {' | '.join(f'{look} look' for look in LOOKS)} |")
    print(f"| --- | --- |{' --- |' * len(LOOKS)}")
    for mistake, count in tally.planted.items():
        told = " | ".join(str(tally.told[mistake, look]) for look in LOOKS)
        print(f"| {mistake or 'none: right photographs'} | {count} | {told} |")
    for taught, shares in tally.named.items():
        print(f"taught {taught}: {sum(shares) / len(shares):.1%} of the test photographs right")


def walk(birds: Path, folder: Path, rng: random.Random, tally: Tally) -> None:
    """One raw folder: look, mend, and teach, three times."""
    raw, left_out = folder / "raw", folder / "except.txt"
    names = rng.sample(sorted(path.name for path in (birds / "train").iterdir()), CLASSES + 1)
    planted = plant(birds / "train", raw, names[:CLASSES], names[CLASSES], rng)
    tally.planted.update(photograph.mistake for photograph in planted.values())
    tally.named["as it was"].append(named(birds, raw, folder))
    told: set[str] = set()
    for look in LOOKS:
        told |= looked_at(raw, planted, left_out)
        tally.told.update((planted[name].mistake, look) for name in told)
        if look == LOOKS[0]:
            tally.named["without what was told"].append(named(birds, raw, folder, left_out))
        mend(raw, planted, told)
        tally.named[f"after the {look} look"].append(named(birds, raw, folder))


def plant(
    train: Path, raw: Path, names: list[str], stranger: str, rng: random.Random
) -> dict[str, Photograph]:
    """Make the folder; what each photograph is, by its name."""
    pool = {name: rng.sample(sorted((train / name).iterdir()), 12) for name in (*names, stranger)}
    planted: dict[str, Photograph] = {}

    def put(make: Callable[[Path], Any], into: str, mistake: str, shows: str | None) -> None:
        place = raw / into / f"IMG_{len(planted):04}.jpg"
        place.parent.mkdir(parents=True, exist_ok=True)
        make(place)
        planted[place.stem] = Photograph(mistake, shows)

    def copy(path: Path) -> Callable[[Path], Any]:
        return lambda place: shutil.copy(path, place)

    def changed(path: Path, change: Callable[[Any], Any]) -> Callable[[Path], Any]:
        return lambda place: change(decode(path.read_bytes())).save(place, quality=75)

    for name in names:
        for _ in range(RIGHT):
            put(copy(pool[name].pop()), name, "", name)
    for name in rng.sample(names, 5):
        other = rng.choice([other for other in names if other != name])
        put(copy(pool[name].pop()), other, "in a wrong folder", name)
    one, two, three, four = rng.sample(names, 4)
    first = {name: sorted((raw / name).iterdir())[0] for name in names}
    put(copy(first[one]), one, "a copy", one)
    put(changed(first[two], lambda image: image.reduce(2)), two, "a smaller copy", two)
    put(changed(first[three], lambda image: image), four, "a copy in another class", three)
    put(lambda place: screenshot().save(place), one, "a screenshot", None)
    put(lambda place: Image.new("RGB", (500, 375), "#eee").save(place), two, "blank", None)
    put(lambda place: place.write_bytes(b"<html>404</html>"), four, "unreadable", None)
    put(copy(pool[stranger].pop()), three, "of no class here", None)
    small = changed(pool[three].pop(), lambda image: image.resize((48, 48)))
    put(small, three, "tiny", three)
    soft = changed(pool[four].pop(), lambda image: image.filter(ImageFilter.GaussianBlur(8)))
    put(soft, four, "blurred", four)
    for _ in range(2):
        put(copy(pool[one].pop()), one[:2] + one[3:], "in a misspelt folder", one)
    return planted


def screenshot() -> Image.Image:
    """Lines of text below a bar."""
    image = Image.new("RGB", (390, 844), "white")
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, 390, 60), fill="#1e78dc")
    for line in range(14):
        draw.text((20, 90 + 50 * line), f"Message {line}: see you at the lake", fill="black")
    return image


def looked_at(raw: Path, planted: dict[str, Photograph], left_out: Path) -> set[str]:
    """What ``check`` tells; of two that are nearly the same, the planted one."""
    page = str(left_out.with_suffix(".html"))
    told = set()
    for found in asked("check", str(raw), "--list", str(left_out), "-o", page)["findings"]:
        if found["kind"] == "names":
            folders = [raw / str(found[key]) for key in ("label", "other")]
            told |= {
                path.stem for path in min(folders, key=lambda f: len(list(f.iterdir()))).iterdir()
            }
        pair = [Path(found[key]).stem for key in ("image", "twin") if found[key]]
        told |= set(sorted(pair, key=lambda name: not planted[name].mistake)[:1])
    return told


def mend(raw: Path, planted: dict[str, Photograph], told: set[str]) -> None:
    """What a person does about the mistakes that were told."""
    for path in sorted(raw.glob("*/*.jpg")):
        mistake, shows = planted[path.stem]
        if path.stem not in told or mistake in ("", "tiny", "blurred"):
            continue
        if shows is not None and mistake.endswith("folder"):
            path.rename(raw / shows / path.name)
        else:
            path.unlink()
    for place in raw.iterdir():
        if not any(place.iterdir()):
            place.rmdir()


def named(birds: Path, raw: Path, folder: Path, left_out: Path | None = None) -> float:
    """The share of test photographs of its classes that a new file names right."""
    file = folder / "birds.frugal"
    file.unlink(missing_ok=True)
    asked("learn", str(file), str(raw), *(["--except", str(left_out)] if left_out else []))
    there = sorted(path for path in (birds / "test").iterdir() if (raw / path.name).is_dir())
    answers = asked("predict", str(file), *map(str, there))["predictions"]
    right = [Path(answer["input"]).parent.name == answer["label"] for answer in answers]
    return sum(right) / len(right)


def asked(*words: str) -> Any:
    """What a command prints as JSON."""
    written = StringIO()
    with redirect_stdout(written):
        code = frugalvae([*words, "--json"])
    if code:
        raise SystemExit(code)
    return json.loads(written.getvalue())


if __name__ == "__main__":
    main()
