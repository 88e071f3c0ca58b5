"""The steps of the Dockerfile in a plain environment, without Docker. ``make docker-steps``.

Copies what it copies, runs what it runs in a fresh virtual environment, starts its entry point as
it would start, asks its health check, teaches one class with the token, and ends it as Docker does.
Folders of the image are below a temporary one. Making the user is left out: we are one already.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.request import Request, urlopen

from lab.benchmarks.serve import small_picture
from lab.benchmarks.serving import form

ROOT = Path(__file__).parents[2]
TOKEN = "a-token-of-this-test-alone"


def instructions(text: str) -> list[tuple[str, str]]:
    r"""What a Dockerfile says, a pair each.

    >>> instructions("# hello\nFROM a\nRUN b \\\n  c\n")
    [('FROM', 'a'), ('RUN', 'b c')]
    """
    plain = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    joined = re.sub(r"\\\n\s*", "", plain)
    pairs = (line.split(None, 1) for line in joined.splitlines() if line.strip())
    return [(word, rest.strip()) for word, rest in pairs]


def main() -> None:
    found = instructions((ROOT / "Dockerfile").read_text())
    with tempfile.TemporaryDirectory() as name:
        image = Path(name)
        for folder in ("app", "data", "run/secrets"):
            (image / folder).mkdir(parents=True)
        (image / "run/secrets/token").write_text(TOKEN)
        subprocess.run([sys.executable, "-m", "venv", image / "venv"], check=True)
        build(found, image)
        serve(found, image)


def build(found: list[tuple[str, str]], image: Path) -> None:
    """Everything up to an image."""
    here = image / "app"
    for word, rest in found:
        if word == "WORKDIR":
            here = image / rest.strip("/")
        elif word == "COPY":
            copy(rest.split(), here)
        elif word == "RUN" and "useradd" not in rest:
            print(f"RUN {rest}", flush=True)
            subprocess.run(["sh", "-ec", rest], cwd=here, env=environment(found, image), check=True)
    python = image / "venv/bin/python"
    torch = subprocess.run([python, "-c", "import torch"], capture_output=True, check=False)
    if not torch.returncode:
        raise SystemExit("PyTorch is in the image")


def copy(words: list[str], here: Path) -> None:
    """``COPY``: files into a folder, or a folder under a name."""
    *sources, target = words
    for source in sources:
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, here / target,
                            ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))  # fmt: skip
        else:
            shutil.copy(ROOT / source, here / target)


def environment(found: list[tuple[str, str]], image: Path) -> dict[str, str]:
    """What a process of the image sees."""
    given = dict(pair.split("=", 1) for word, rest in found if word == "ENV"
                 for pair in shlex.split(rest))  # fmt: skip
    paths = f"{image / 'venv/bin'}:{os.environ['PATH']}"
    return {"HOME": str(image), "PATH": paths, **pip_settings(), **given}


def pip_settings() -> dict[str, str]:
    """Where packages come from on this machine."""
    return {name: value for name, value in os.environ.items() if name.startswith("PIP_")}


def serve(found: list[tuple[str, str]], image: Path) -> None:
    """Start it, look whether it is healthy, teach it, and end it."""
    said = dict(found)
    words = json.loads(said["ENTRYPOINT"]) + json.loads(said["CMD"])
    command = [inside(word, image) for word in words]
    probe = [inside(word, image) for word in json.loads(said["HEALTHCHECK"].partition("CMD ")[2])]
    process = subprocess.Popen(command, env=environment(found, image), cwd=image / "data")
    try:
        for _ in range(100):
            healthy = subprocess.run(probe, env=environment(found, image), check=False)
            if not healthy.returncode:
                break
            time.sleep(0.2)
        else:
            raise SystemExit("it never becomes healthy")
        body, kind = form([small_picture(1)], {"name": "wren"})
        headers = {"Content-Type": kind, "Authorization": f"Bearer {TOKEN}"}
        with urlopen(Request("http://127.0.0.1:8000/learn", body, headers)) as reply:
            print(f"taught: {json.load(reply)['label']}")
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait()
    if code or not (image / "data/classes.frugal").exists():
        raise SystemExit(f"it ended with {code}")
    print("every step of the Dockerfile works")


def inside(word: str, image: Path) -> str:
    """A path of the image as one of this machine."""
    return f"{image}{word}" if word.startswith(("/data", "/run")) else word


if __name__ == "__main__":
    main()
