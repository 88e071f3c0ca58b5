"""A probe: is a server healthy? For the health check of a container.

``python -m frugalvae.server.probe http://127.0.0.1:8000 [TOKEN_FILE]`` ends with 0 if it is, and
with 1 and a line if it is not. A server that goes on with an older state of its file is healthy.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from urllib.request import ProxyHandler, Request, build_opener

from frugalvae.files import read_plain

SECONDS = 4.0  # to wait for an answer


def main(arguments: Sequence[str]) -> int:
    """Ask once; the exit code."""
    address, *rest = arguments
    try:
        headers = {}
        if rest:
            token = read_plain(rest[0]).decode().split("\n")[0].strip()
            headers["Authorization"] = f"Bearer {token}"
        request = Request(f"{address}/health", headers=headers)
        with build_opener(ProxyHandler({})).open(request, timeout=SECONDS) as answer:
            status = json.load(answer)["status"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        print(f"not healthy: {error}")
        return 1
    print(status)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
