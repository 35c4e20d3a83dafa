"""The names of `tagwire.client`: all there, each imported when it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tagwire.client
import tagwire.client.admin


def modules_after(line: str) -> set[str]:
    told = subprocess.run(
        [sys.executable, "-c", f"{line}; import sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(told.stdout.split())


@pytest.mark.parametrize("module", [tagwire.client, tagwire.client.admin])
def test_every_name_is_there_and_listed(module):
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        assert getattr(module, name) is not None


def test_a_name_that_is_not_there_is_an_attribute_error_that_names_it():
    with pytest.raises(AttributeError, match=r"'tagwire\.client' has no attribute 'Client2'"):
        getattr(tagwire.client, "Client2")  # noqa: B009


def test_a_client_is_imported_without_producer_consumer_and_admin():
    found = modules_after("from tagwire.client import Client")
    assert "tagwire.client.client" in found
    rooms = ("tagwire.client.producing", "tagwire.client.consuming", "tagwire.client.admin.")
    assert [name for name in found if name.startswith(rooms)] == []
