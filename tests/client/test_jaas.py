"""`sasl.jaas.config` is taken apart as Java's clients do, bounded, and nothing of it is told."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest

from tagwire.client.jaas import MAX_CHARACTERS, login_module
from tagwire.errors import ConfigError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"

READ = [
    (f'{PLAIN} required username="alice" password="hunter2";', {"username": "alice", "password": "hunter2"}),
    (f"{PLAIN}\n  required\n  username=alice\tpassword='hunter 2' ; ", {"username": "alice", "password": "hunter 2"}),
    (f"{PLAIN} REQUIRED username = alice", {"username": "alice"}),
    (f"{PLAIN} required;", {}),
    (f'{PLAIN} required p="a\\"b\\\\c\\n\\101";', {"p": 'a"b\\c\nA'}),
    (f'{PLAIN} required p="\\7771\\400\\88";', {"p": "?71 088"}),
    (f'{PLAIN} required p="a;b=c // d";', {"p": "a;b=c // d"}),
    (f"{PLAIN} required /* who */ a=b // and so on\n c=d==;", {"a": "b", "c": "d=="}),
    (f"{PLAIN} optional x.y-z=1;", {"x.y-z": "1"}),
]


@pytest.mark.parametrize(("text", "options"), READ)
def test_options_are_read_as_java_quotes_them(text: str, options: dict[str, str]) -> None:
    found = login_module(text)
    assert (found.name, found.options) == ("PlainLoginModule", options)
    assert "hunter" not in repr(found)


WRONG = [
    ("", "needs a login module and a flag"),
    ("hunter2", "needs a login module and a flag"),
    (f'{PLAIN} username="hunter2";', "needs a login module and a flag"),
    (f"{PLAIN} required hunter2;", "no option at character 65"),
    (f'{PLAIN} required password="hunter2', "no option at character 65"),
    (f"{PLAIN} required password=;", "no option at character 65"),
    (f'{PLAIN} required password="hunter2" password="hunter3";', "option password stands there twice"),
    (f'{PLAIN} required p="hunter2"; {PLAIN} required;', "a client has one login module"),
    (f"{PLAIN} required /* hunter2", "no option at character"),
    ("x" * (MAX_CHARACTERS + 1), f"has {MAX_CHARACTERS + 1} characters"),
]


@pytest.mark.parametrize(("text", "why"), WRONG)
def test_what_is_no_login_module_is_refused_without_being_told(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        login_module(text)
    assert str(caught.value).startswith("sasl.jaas.config: ")
    assert "hunter" not in str(caught.value)


@pytest.mark.parametrize(
    "piece", ['a="', "a='\\", "/*", "//", "a=b ", " ", "\\", '"', "a" * 50, "a.", "a=", 'a="\\"'], ids=repr
)
def test_the_longest_texts_are_refused_or_read_at_once(piece: str) -> None:
    text = f"{PLAIN} required " + piece * ((MAX_CHARACTERS - 100) // len(piece))
    begun = time.process_time()
    with suppress(ConfigError):
        login_module(text)
    assert time.process_time() - begun < 2
