"""What is generated from the catalog is committed and current: type stubs of `tagwire.messages`, and API keys."""

from pathlib import Path

import tagwire.messages
from tagwire.codec.stubs import api_keys, stubs
from tagwire.spec.api_keys import API_NAMES, ApiKey

PACKAGE = Path(tagwire.messages.__file__).parent


def test_the_committed_stubs_are_what_make_stubs_writes() -> None:
    assert (PACKAGE / "messages.pyi").read_text(encoding="utf-8") == stubs()


def test_the_committed_api_keys_are_those_of_the_catalog() -> None:
    assert (PACKAGE / "spec" / "api_keys.py").read_text(encoding="utf-8") == api_keys()
    assert {int(key) for key in ApiKey} == set(API_NAMES)
    assert (ApiKey.PRODUCE, ApiKey(22).name, API_NAMES[22]) == (0, "INIT_PRODUCER_ID", "InitProducerId")
