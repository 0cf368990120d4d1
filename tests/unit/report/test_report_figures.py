"""How single numbers and foreign text are written."""

from __future__ import annotations

import pytest

from pytest_crashlab.report.figures import (
    ascii_text,
    percent,
    percent_interval,
    points_interval,
    signed_points,
    text,
)


@pytest.mark.parametrize(
    ("share", "written"),
    [
        (None, "-"),
        (0, "0.0 %"),
        (0.0004, "< 0.1 %"),
        (0.5, "50.0 %"),
        (0.8375, "83.8 %"),
        (0.8375 - 1e-15, "83.8 %"),  # the same mean, summed in another order
        (0.9996, "> 99.9 %"),
        (1, "100.0 %"),
    ],
)
def test_percent(share, written):
    assert percent(share) == written


def test_intervals_need_both_ends():
    assert percent_interval(0.8, 1) == "80.0 % to 100.0 %"
    assert percent_interval(None, 1) == "-"
    assert points_interval(-0.314, 0.02) == "-31.4 to +2.0 points"
    assert points_interval(-0.1, None) == "-"


@pytest.mark.parametrize(
    ("share", "written"), [(None, "-"), (-0.125, "-12.5"), (0.03, "+3.0"), (-0.0001, "0.0"), (0.0, "0.0")]
)
def test_points(share, written):
    assert signed_points(share) == written


@pytest.mark.parametrize(
    ("foreign", "safe"),
    [
        (None, "-"),
        ("", ""),
        ("plain [b]-1", "plain [b]-1"),
        ("größe 東京 🤖", "größe 東京 🤖"),
        ("क्‍ष", "क्‍ष"),  # a joiner inside a word
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\tb\nc\rd\x00e\x7f", r"a\tb\nc\rd\x00e\x7f"),
        ("\x9b31m", r"\x9b31m"),
        ("\u202eoverride\u2066isolate", r"\u202eoverride\u2066isolate"),
        ("line\u2028paragraph\u2029", r"line\u2028paragraph\u2029"),
        ("bom\ufeff", r"bom\ufeff"),
        ("lone \ud800", r"lone \ud800"),
        ("tag \U000e0041", r"tag \U000e0041"),
    ],
)
def test_text_cannot_act(foreign, safe):
    assert text(foreign) == safe


def test_ascii_spells_what_it_can():
    assert ascii_text("± 3 é 東") == "+/- 3 \\xe9 \\u6771"
