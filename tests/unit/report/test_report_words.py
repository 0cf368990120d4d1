"""What changed between two texts: nothing is lost, nothing is invented, and the work is bounded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_crashlab.report.words import (
    ADDED,
    LEFT_OUT,
    MOST_WORDS,
    REMOVED,
    SAME,
    Words,
    are_alike,
    changed_words,
)

TEXTS = st.lists(
    st.sampled_from(["the", "refund", " ", "\n", "is", "30", "€", ".", "  ", "denied"]), max_size=9
)


def bare(words, *marks):
    return "".join("".join(part.text for part in words if part.mark in marks).split())


def test_the_words_that_differ_are_marked():
    assert changed_words("The refund is granted.\nBye", "The refund is denied now.\nBye") == (
        Words(SAME, "The refund is"),
        Words(REMOVED, " granted"),
        Words(ADDED, " denied now"),
        Words(SAME, ".\nBye"),
    )


@pytest.mark.parametrize(
    ("before", "after"), [("0.00", "29.23"), ("1,200.50", "1,200.55"), ("2.4.0", "2.4.1")]
)
def test_a_number_is_one_word(before, after):
    assert changed_words(f"We refund {before}.", f"We refund {after}.") == (
        Words(SAME, "We refund"),
        Words(REMOVED, f" {before}"),
        Words(ADDED, f" {after}"),
        Words(SAME, "."),
    )


@given(TEXTS.map(" ".join), TEXTS.map(" ".join))
def test_both_texts_can_be_read_from_the_marks(before, after):
    words = changed_words(before, after)
    assert bare(words, SAME, REMOVED) == "".join(before.split())
    assert bare(words, SAME, ADDED) == "".join(after.split())
    assert are_alike(words) is (before.split() == after.split()) or bare(words, REMOVED, ADDED) == ""


@pytest.mark.parametrize(("before", "after"), [("a  b", "a b"), ("a\nb", "a b"), ("", "")])
def test_blanks_are_no_change(before, after):
    assert are_alike(changed_words(before, after))


def test_a_long_stretch_that_is_alike_is_shortened():
    same = " ".join(f"w{i}" for i in range(100))
    words = changed_words(f"{same} old", f"{same} new")
    assert [part.mark for part in words] == [SAME, LEFT_OUT, SAME, REMOVED, ADDED]
    assert words[1].text == "76 words are the same"


def test_what_is_too_long_is_said_to_be_left_out():
    before, after = (" ".join(f"{side}{i}" for i in range(MOST_WORDS + 7)) for side in "ab")
    words = changed_words(before, after)
    assert words[-1] == Words(LEFT_OUT, "up to 7 more words are not compared")
    long = "x" * 20_000
    assert changed_words(long + "a", long + "b")[-1] == Words(
        LEFT_OUT, "up to 1 more characters are not compared"
    )


def test_much_that_repeats_is_marked_as_a_whole():
    words = changed_words("b " + "a " * 900, "c " + "a " * 800 + "d")
    assert next(part.mark for part in words if part.mark != LEFT_OUT) == REMOVED
    assert bare(words, SAME, REMOVED, ADDED).count("a") >= 24
