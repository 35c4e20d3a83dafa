"""The values that Kafka's classes are asked about are what they should be before any Java sees them."""

from __future__ import annotations

from tagwire import messages
from tagwire.spec import catalog

from .values import values


def test_a_value_of_any_kind_survives_our_own_codec_and_json_form() -> None:
    for name in catalog.names():
        message, cls = catalog.message(name), getattr(messages, name)
        for version in message.valid_versions:
            for variant, value in values(message, version):
                assert cls.decode(value.encode(version), version) == value, (name, version, variant)
                if variant != "tags":
                    assert cls.from_json(value.to_json(version), version) == value, (name, version, variant)


def test_values_are_the_same_on_every_run() -> None:
    fetch = catalog.message("FetchResponse")
    assert dict(values(fetch, 17)) == dict(values(fetch, 17))


def test_raw_tags_are_only_for_versions_that_have_tag_sections() -> None:
    fetch = catalog.message("FetchResponse")
    assert "tags" in dict(values(fetch, 12))
    assert "tags" not in dict(values(fetch, 11))
