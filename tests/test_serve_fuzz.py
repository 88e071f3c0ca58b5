"""Requests that nobody would send, made from our own description: never an error of ours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.serving import Served
from tests.tool import paint

pytest.importorskip("starlette", reason="the extra 'serve' is not installed")
schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")

CASES = 25  # for each path and method

NAMES = st.sampled_from(
    ["name", "label", "ids", "from", "to", "revision", "other", "against", "case_matters"]
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner),
    max_leaves=8,
)
PARTS = st.lists(
    st.sampled_from([b"--x", b"\r\n", b"Content-Disposition: form-data; name=", b'"images"',
                     b"; filename=", b'"a"', b"\x89PNG\r\n\x1a\n", b"--"]) | st.binary(max_size=20)
)  # fmt: skip
BODIES = (
    st.binary(max_size=200)
    | PARTS.map(b"".join)
    | st.dictionaries(NAMES, JSON).map(lambda value: json.dumps(value).encode())
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = paint(tmp_path_factory.mktemp("fuzz"), "cat", "dax", count=3)
    found = Served(folder / "birds.frugal", "--teach")
    for name in ("cat", "dax"):
        found.send("/learn", sorted((folder / name).glob("*")), name=name)
    yield found
    found.close()


def attempts(operation: Any, checks: list[Any], served: Served) -> int:
    """Ask in many ways; how many these were."""
    tried = 0

    @settings(
        max_examples=CASES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def ask(case: Any) -> None:
        nonlocal tried
        response = case.call(base_url=f"http://127.0.0.1:{served.port}")
        tried += 1
        assert response.status_code != 500, (case.as_curl_command(), response.text)
        case.validate_response(response, checks=checks)

    ask()
    return tried


def test_no_request_makes_the_server_fail(served: Served) -> None:
    """Every answer is one of the description: its status, its content type and its schema."""
    schema = schemathesis.openapi.from_dict(served.get("/openapi.json").json)
    schema.config.base_url = f"http://127.0.0.1:{served.port}"
    names = ("status_code_conformance", "content_type_conformance", "response_schema_conformance")
    checks = [getattr(schemathesis.checks, name) for name in names]
    tried = sum(attempts(found.ok(), checks, served) for found in schema.get_all_operations())
    assert tried > 200
    assert served.get("/health").json["status"] == "ok"
    assert "Traceback" not in served.log.read_text()


def test_bytes_of_any_kind_are_no_error_of_ours(served: Served, tmp_path: Path) -> None:
    """Bodies and headers that are no requests at all."""
    kinds = ["application/json", "multipart/form-data; boundary=x", "image/png", "text/plain"]
    paths = ["/predict", "/learn", "/rename", "/forget", "/undo", "/recent/clear"]

    @settings(max_examples=100, deadline=None, database=None, derandomize=True)
    @given(st.sampled_from(paths), st.sampled_from(kinds), BODIES)
    def ask(path: str, kind: str, body: bytes) -> None:
        assert served.ask("POST", path, body, {"Content-Type": kind}).status < 500

    ask()
    assert "Traceback" not in served.log.read_text()
