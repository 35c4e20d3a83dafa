"""An error of a job calls options what the command calls them."""

from __future__ import annotations

import pytest

from tagwire.cli.as_typed import as_typed
from tagwire.errors import ConfigError, KafkaError, StorageError

NAMES = {
    "value.format": "--value-format",
    "columnNameOfCorruptRecord": "--corrupt-column",
    "mode": "--mode",
    "headers": "--headers",
    "rate": "--rate",
    "speed": "--speed",
    "subscribe": "--of",
}


@pytest.mark.parametrize(
    ("kind", "raised", "said"),
    [
        (ConfigError, "option mode='x': needs A or B", "--mode='x': needs A or B"),
        (
            ConfigError,
            "option columnNameOfCorruptRecord: needs mode=PERMISSIVE, not FAILFAST",
            "--corrupt-column: needs --mode=PERMISSIVE, not FAILFAST",
        ),
        (
            StorageError,
            "/headers/mode: was begun with headers a, not b; its columns stay as they are",
            "/headers/mode: was begun with --headers a, not b; its columns stay as they are",
        ),
        (
            StorageError,
            "/t: was begun with values as they are, not decoded by value.format=json",
            "/t: was begun with values as they are, not decoded by --value-format=json",
        ),
        (ConfigError, "headers: an empty name", "--headers: an empty name"),
        (
            ConfigError,
            "rate=1 and speed=2: both say how fast; give one",
            "--rate=1 and --speed=2: both say how fast; give one",
        ),
        (ConfigError, "rate=-1.0: needs a number above 0", "--rate=-1.0: needs a number above 0"),
        (ConfigError, "option subscribe: topic 'mode' is not there", "--of: topic 'mode' is not there"),
        (ConfigError, "option kafka.key.serializer: cannot be set", "-X key.serializer: cannot be set"),
        (ConfigError, "topic 'headers': the rate of mode", "topic 'headers': the rate of mode"),
    ],
)
def test_options_are_called_what_was_typed_and_words_stay_words(kind, raised, said):
    with pytest.raises(kind) as found, as_typed(NAMES):
        raise kind(raised)
    assert str(found.value) == said


def test_other_errors_go_through_as_they_are():
    error = KafkaError(3, "option mode")
    with pytest.raises(KafkaError) as found, as_typed(NAMES):
        raise error
    assert found.value is error
