"""Regular expressions that members subscribe by: RE2's, against whole names, in bounded time."""

from __future__ import annotations

import re
import string
import time
from contextlib import suppress
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwire.broker.groups.topic_regex import MOST_CHARACTERS, compiled
from tagwire.errors import Error, KafkaError

NAMES = ["orders", "orders-1", "Orders", "t", "t1", "t_2", "a.b", "aaa", "ab", "b", "0", "__consumer_offsets"]

SAME_AS_PYTHON = [
    "", ".", ".*", "t.*", "orders", "orders-?[0-9]*", "(?i)orders", "(?i:O)rders", "a|b", "(a|b)+", "(?:a|ab)(?:b)?",
    "a{3}", "a{1,2}", "a{2,}", "a{0}", "[a-c.]+", "[^a-z]*", r"\w+", r"\W", r"\d", r"\D+", r"t\d?", r"a\.b", r"[\w.]+",
    "^t1$", "^(t|t1)$", r"\bt\b", r"t\B1", "(?P<n>a)+b", "[]a]+",
    "[a-]+", "x*", "(x*)*a*", "((a*)*)*", "a+?", "(?s).*", r"\x741", "a{", "a{,2}",
]  # fmt: skip


@pytest.mark.parametrize("pattern", SAME_AS_PYTHON)
def test_what_python_and_re2_mean_alike_matches_alike(pattern):
    expected = {name for name in NAMES if re.fullmatch(pattern, name)}
    assert compiled(pattern).matching(NAMES) == expected


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        (r"\Qa.b\E", {"a.b"}),
        (r"\Qa.", set()),
        (r"\Qaa\E+", {"aaa"}),
        (r"(?:\Qt1\E?){1,2}", {"t", "t1"}),
        (r"\Qa.b\E{1}", {"a.b"}),
        (r"[[:lower:]]+", {"orders", "t", "aaa", "ab", "b"}),
        (r"[[:^alpha:]]", {"0"}),
        (r"\p{Lu}\pL+", {"Orders"}),
        (r"\P{L}", {"0"}),
        (r"\p{^L}", {"0"}),
        (r"\At1\z", {"t1"}),
        (r"(?P<n>t)1", {"t1"}),
        ("{|a.b", {"a.b"}),
        (r"\x{74}1", {"t1"}),
        (r"(?U)a+", {"aaa"}),
        (r"(?i)ORDERS(?-i)-1", {"orders-1"}),
        (r"((?i)O)rders", {"orders", "Orders"}),
        (r"(t(?i)X|T)1", {"t1"}),
        (r"(?i)[[:upper:]]", {"t", "b"}),
        (r"(?i)\p{Lu}", {"t", "b"}),
        (r"(?i)[^T]", {"b", "0"}),
        (r"(?i)\P{Lu}", {"0"}),
        (r"(?i)[S-T]", {"t"}),
        (r"\07", set()),
        (r"\60", {"0"}),
        (r"\1641", {"t1"}),
        (r"[\60-\71]", {"0"}),
        ("a(?i)*", {"aaa"}),
        ("(?i)A(?-i){3}", {"aaa"}),
        (r"a\Q\E+", {"aaa"}),
        (r"\Qaa\E(?i)+", {"aaa"}),
        ("(?)a(?i)B", {"ab"}),
        ("(?<n>t)1", {"t1"}),
        ("a{03}|b", {"b"}),
        ("a{1,03}|b", {"b"}),
    ],
)  # fmt: skip
def test_what_re2_has_and_python_has_not(pattern, matched):
    assert compiled(pattern).matching(NAMES) == matched


@pytest.mark.parametrize(
    "pattern",
    [
        "(", ")", "a)", "(a", "[", "[a", "[b-a]", "*", "+a", "a**", "a+*", "a{2}{3}", "a{1001}", "a{3,2}", r"(a)\1",
        r"\y", "\\", "(?=a)", "(?!a)", "(?<=a)", "(?<!a)", "(?P=n)", "(?z)", "(?P<n>a)(?P<n>b)", r"\p{Nope}", r"\x1",
        "[[:nope:]]", "{2}", "a|{2,}", "({2})",
        "(?i)*", "a|(?i)+", "((?i)?)", r"\Q\E*", r"(\Q\E{2})", "(?-)a", "(?i-:a)", "(?<n>a)(?P<n>b)", "(?<>a)",
        "(?<é>a)", r"\8", r"\81", r"\7",
        "(a{1000}){1000}", "((()" * 200, "(" * 5000, "x" * (MOST_CHARACTERS + 1), "((){1000}){1000}",
        "(?:" + "(?i)" * 1000 + "a){1000}", f"(?{'i' * 4000}:a){{1000}}", "(?:" + r"\Q\E" * 1000 + "a){1000}",
    ],
)  # fmt: skip
def test_what_is_no_regular_expression_of_re2_is_refused_and_told_where(pattern):
    with pytest.raises(KafkaError) as caught:
        compiled(pattern)
    assert caught.value.error is Error.INVALID_REGULAR_EXPRESSION
    assert len(caught.value.message) < 300


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|a)*b", "(a|aa)+b", "(.*)*b", "(x+x+)+y", "(a?){300}a{300}"])
def test_a_hostile_regular_expression_takes_no_longer_than_another(pattern):
    names = ["a" * 200 + str(number) for number in range(100)]
    with suppress(KafkaError):
        assert compiled(pattern).matching(names) == frozenset()


def test_a_class_of_characters_that_repeats_takes_no_longer_than_another():
    begin = time.process_time()
    assert compiled(f"[{'a' * 4000}]{{1000}}").matching(["a" * 1000, "a"]) == {"a" * 1000}
    assert time.process_time() - begin < 2


def test_what_would_take_too_many_steps_is_refused():
    random = Random(1)
    names = ["".join(random.choices("ab", k=200)) for _ in range(2000)]
    with pytest.raises(KafkaError, match="takes too long"):
        compiled("(.*a.{900}|.*b.{900}|.*)*c").matching(names)


ATOMS = st.sampled_from(["a", "b", "-", ".", "[ab]", "[^a]", r"\w", r"\d", "^", "$", r"\b"])
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,}"])).map(lambda p: f"(?:{p[0]}){p[1]}"),
    ),
    max_leaves=8,
)


@given(PATTERNS, st.lists(st.text(string.ascii_lowercase[:3] + "-._0", max_size=8), max_size=8))
def test_any_regular_expression_matches_what_pythons_does(pattern, names):
    expected = {name for name in names if re.fullmatch(pattern, name)}
    assert compiled(pattern).matching(names) == expected
