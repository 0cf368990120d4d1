"""How time, tokens and money are written."""

from __future__ import annotations

import re

import pytest

from pytest_crashlab.report.terminal import render_text
from pytest_crashlab.report.usage import amount
from tests.stories import row


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0, "0"),
        (0.00042, "0.00042"),
        (0.0000123, "0.000012"),
        (0.0421, "0.0421"),
        (1.25, "1.25"),
        (3.0, "3"),
        (999.5, "999.5"),
        (12_400.4, "12,400"),
    ],
)
def test_amounts(value, text):
    assert amount(value) == text


def test_what_is_known_and_what_is_not(tell):
    rows = [
        row(
            f"t{case}",
            trial,
            "P",
            run_duration=1.0 + case + trial / 10,
            tokens_in=1000 * (case + 1),
            cost_usd=0.01 * (case + 1),
            cost_basis="billed" if trial == 1 else "estimated",
        )
        for case in range(2)
        for trial in (1, 2)
    ]
    text = render_text(tell(None, {"t0": "..", "t1": ".."}, rows=rows), width=200, color=False, full=True)
    table = text.partition("Latency, tokens and cost")[2].partition("\n\n")[0].splitlines()
    lines = {line[2:14].strip(): " ".join(line[14:].split()) for line in table[2:]}
    assert lines["latency p50"].startswith("1.65 s ")
    assert lines["tokens in"].endswith("6,000 tokens 4 of 4 trials that ran")
    assert lines["tokens out"] == "- - - no trial reported it"
    assert lines["cost"].endswith("0.06 USD billed and estimated; 4 of 4 trials that ran")
    assert "Look at first" not in text


def test_short_times_read_in_milliseconds(tell):
    rows = [row(f"t{c}", t, "P", run_duration=0.0021 + c / 1e5) for c in range(9) for t in range(1, 6)]
    text = render_text(
        tell(None, {f"t{c}": "....." for c in range(9)}, rows=rows), width=200, color=False, full=True
    )
    (line,) = (line for line in text.splitlines() if line.strip().startswith("latency p50"))
    assert " 2.14 ms " in line
    assert re.search(r"\d\.\d+ to \d\.\d+ ms ", line)
    assert not re.search(r"\de-\d", text)


def test_an_anomaly_comes_before_what_it_may_explain(tell):
    text = render_text(tell(None, {"t": "FFFFF", "u": "FFFFF"}), width=80, color=False)
    assert "Look at first\n  All 10 trials of 2 cases ended as failed" in text
