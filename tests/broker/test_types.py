"""A handler that misspells a field, or answers with another API's response, is refused by mypy before it runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import tagwire

SOURCES = Path(tagwire.__file__).parent.parent
CONFIGURATION = SOURCES.parent / "pyproject.toml"

HANDLER = """\
from tagwire import messages
from tagwire.broker.registry import Call, handles

Request = messages.HeartbeatRequest
Response = messages.HeartbeatResponse


@handles(Request, versions="0-4")
async def heartbeat(call: Call[Request]) -> Response:
    known = call.request.generation_id
    return Response(error_code=known)
"""

# what is right, what stands there instead, what mypy says of it
MISTAKES = [
    ("generation_id", "generation", '"HeartbeatRequest" has no attribute "generation"'),
    ("error_code=", "error=", 'keyword argument "error" for "HeartbeatResponse"'),
    ("error_code=known", 'error_code=""', 'incompatible type "str"; expected "int"'),
    ("handles(Request", "handles(messages.FetchRequest", "Call[HeartbeatRequest]"),
    ("return Response(error_code=known)", "return messages.FetchResponse()", 'got "FetchResponse"'),
]


def test_mypy_sees_a_wrong_field_and_a_wrong_message_in_a_handler(tmp_path: Path) -> None:
    (tmp_path / "right.py").write_text(HANDLER)
    for number, (right, wrong, _) in enumerate(MISTAKES):
        assert HANDLER.count(right) == 1
        (tmp_path / f"wrong{number}.py").write_text(HANDLER.replace(right, wrong))
    files = sorted(path.name for path in tmp_path.glob("*.py"))
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(CONFIGURATION), "--follow-imports", "silent", *files],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    told = checked.stdout.splitlines()
    assert not [line for line in told if line.startswith("right.py")]
    for number, (*_, sentence) in enumerate(MISTAKES):
        assert any(line.startswith(f"wrong{number}.py:") and sentence in line for line in told), checked.stdout
