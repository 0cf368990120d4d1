"""How single numbers and foreign text are written."""

from __future__ import annotations

import pytest

from pytest_crashlab.report.figures import (
    amount,
    ascii_text,
    change,
    change_interval,
    percent,
    percent_interval,
    points_interval,
    seconds,
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
    # ten thousand of ten thousand trials leave something open
    assert percent_interval(0.99962, 1) == "99.9 % to 100.0 %"
    assert percent_interval(0, 0.0003) == "0.0 % to 0.1 %"
    assert percent_interval(0.50001, 0.50002) == "50.0 % to 50.1 %"
    assert percent_interval(1, 1) == "100.0 % to 100.0 %"
    assert points_interval(-0.0001, 0.0002) == "-0.1 to +0.1 points"
    assert points_interval(-0.00021, -0.0001) == "-0.1 to 0.0 points"
    assert points_interval(-0.314, 0.02) == "-31.4 to +2.0 points"
    assert points_interval(-0.1, None) == "-"


@pytest.mark.parametrize(
    ("share", "written"), [(None, "-"), (-0.125, "-12.5"), (0.03, "+3.0"), (-0.0001, "0.0"), (0.0, "0.0")]
)
def test_points(share, written):
    assert signed_points(share) == written


@pytest.mark.parametrize(
    ("value", "unit", "written"),
    [
        (None, "s", "-"),
        (0, "s", "0 s"),
        (0.0000042, "s", "< 0.1 ms"),
        (0.00123, "s", "1.23 ms"),
        (0.0999, "s", "99.9 ms"),
        (0.1, "s", "0.1 s"),
        (75.25, "s", "75.25 s"),
        (0.0000123, "USD", "0.0000123 USD"),
        (12_400.4, "tokens", "12,400 tokens"),
        (0.0004, "share", "< 0.1 %"),
    ],
)
def test_amounts_have_no_exponent(value, unit, written):
    assert amount(value, unit) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.0, "0.00 s"),
        (0.00004, "< 0.1 ms"),
        (0.00071, "0.71 ms"),
        (0.0463, "46 ms"),
        (0.1, "0.10 s"),
        (75.256, "75.26 s"),
    ],
)
def test_what_something_took_is_never_0_if_it_took_time(value, written):
    assert seconds(value) == written


@pytest.mark.parametrize(
    ("value", "unit", "written"),
    [
        (None, "s", "-"),
        (-0.00002, "s", "less than 0.1 ms lower"),
        (0.00002, "s", "less than 0.1 ms higher"),
        (-0.0042, "s", "-4.2 ms"),
        (2, "s", "+2 s"),
        (-0.0000123, "USD", "-0.0000123 USD"),
        (0.125, "share", "+12.5 points"),
    ],
)
def test_changes(value, unit, written):
    assert change(value, unit) == written


@pytest.mark.parametrize(
    ("low", "high", "unit", "written"),
    [
        (None, None, "s", "-"),
        (-0.0042, 0.00001, "s", "-4.2 to +0.01 ms"),
        (-0.5, 0.05, "s", "-0.5 to +0.05 s"),
        (None, 1.5, "s", "- to +1.5 s"),
        (-0.00001, 0.0, "USD", "-0.00001 to 0 USD"),
        (-0.1, 0.02, "share", "-10.0 to +2.0"),
    ],
)
def test_intervals_of_changes(low, high, unit, written):
    assert change_interval(low, high, unit) == written


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
