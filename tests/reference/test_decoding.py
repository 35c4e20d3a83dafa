"""What the decoder of the site says of bytes, and that a browser has all that it needs."""

from __future__ import annotations

import base64
import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tagwire import messages, records
from tagwire.errors import ConfigError
from tagwire.reference import decoding
from tagwire.rpc.headers import RequestHeader, encode_request_header, encode_response_header
from tagwire.spec import catalog

VECTORS = Path(__file__).parents[1] / "vectors" / "messages.jsonl.gz"
METADATA = messages.MetadataRequest(topics=[messages.MetadataRequest.MetadataRequestTopic(name="flights")])


def framed(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


REQUEST = framed(encode_request_header(RequestHeader(3, 12, 8, "app")) + METADATA.encode(12))
RESPONSE = framed(encode_response_header(3, 12, 8) + messages.MetadataResponse(cluster_id="c").encode(12))
BATCH = records.write([records.Record(b"key", b"value")])


@pytest.mark.parametrize(
    ("data", "title"),
    [
        (REQUEST, "Metadata request, version 12"),
        (REQUEST + REQUEST, "Metadata request, version 12; Metadata request, version 12"),
        (RESPONSE, "Metadata response, version 12"),
        (BATCH, "Record batch"),
        (BATCH + BATCH, "Record batches"),
    ],
)
def test_what_bytes_are_is_guessed(data: bytes, title: str) -> None:
    for text in (data.hex(), data.hex(" ").upper(), base64.b64encode(data).decode()):
        found = decoding.decode(text)
        assert (found[0].title, found[0].error) == (title, "")


def test_bytes_that_nothing_fits_are_shown_as_such() -> None:
    (found,) = decoding.decode("ff" * 40)
    assert found.error
    assert "ff ff" in found.html


def test_every_message_of_kafkas_is_decoded_as_the_command_does() -> None:
    lines = [json.loads(line) for line in gzip.decompress(VECTORS.read_bytes()).splitlines()]
    for line in [line for line in lines if line.get("hex") and catalog.contains(line["message"])][::20]:
        (found,) = decoding.decode(line["hex"], "message", line["message"], line["version"])
        kind = getattr(messages, line["message"])
        document = kind.decode(bytes.fromhex(line["hex"]), line["version"]).to_json(line["version"])
        assert (found.error, json.loads(found.document)) == ("", document)


def test_what_cannot_be_read_is_told_after_what_can() -> None:
    (found,) = decoding.decode(METADATA.encode(12)[:-1].hex(), "message", "MetadataRequest", 12)
    assert "MetadataRequest v12" in found.error
    assert "flights" in found.html
    assert found.document == ""


@pytest.mark.parametrize(
    ("text", "kind", "message", "version", "said"),
    [
        ("", "guess", "", None, "no bytes"),
        ("xyz!", "guess", "", None, "neither hexadecimal nor base64"),
        ("00", "message", "", None, "choose both"),
        ("00", "message", "Nonsense", 1, "no message"),
        ("00", "response", "Nonsense", 1, "no response"),
        ("00" * (decoding.MAX_BYTES + 1), "guess", "", None, "more than"),
    ],
)
def test_what_cannot_be_asked_is_an_error(text: str, kind: str, message: str, version: int | None, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        decoding.decode(text, kind, message, version)
    told = json.loads(decoding.decode_json(text, kind, message, "" if version is None else str(version)))
    assert said in told["error"]


def test_what_comes_from_the_bytes_is_text_in_the_page() -> None:
    evil = messages.MetadataRequest(topics=[messages.MetadataRequest.MetadataRequestTopic(name="<script>")])
    (found,) = decoding.decode(evil.encode(12).hex(), "message", "MetadataRequest", 12)
    assert "<script>" not in found.html
    assert "&lt;script&gt;" in found.html


def test_the_decoder_needs_no_package_that_a_browser_lacks() -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['cramjam', 'crc32c', 'pyarrow', 'typer', 'rich']))\n"
        "from tagwire.reference import decoding\n"
        f"print([one.title for one in decoding.decode({REQUEST.hex()!r}) + decoding.decode({BATCH.hex()!r})])"
    )
    settings = {"TAGWIRE_PURE": "1", "PYTHONPATH": str(Path(decoding.__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", code], env=settings, capture_output=True, text=True, timeout=100)
    assert done.stdout == "['Metadata request, version 12', 'Record batch']\n", done.stderr
