"""From the id of a trial to its case."""

from __future__ import annotations

import pytest

from pytest_crashlab.records.case import trial_of


@pytest.mark.parametrize(
    ("test_id", "found"),
    [
        ("t.py::t[trial2]", ("t.py::t", 2)),
        ("t.py::t[b-trial12]", ("t.py::t[b]", 12)),
        ("t.py::t[a-b-trial1]", ("t.py::t[a-b]", 1)),
        ("t.py::t[a[0]-trial1]", ("t.py::t[a[0]]", 1)),
        ("t.py::t[trial2-trial3]", ("t.py::t[trial2]", 3)),
        ("t.py::t", None),
        ("t.py::t[b]", None),
        ("t.py::t[2]", None),
        ("t.py::t[b-trial]", None),
        ("t.py::t[b-trialx]", None),
        ("t.py::trial2]", None),
        ("", None),
    ],
)
def test_the_case_of_a_trial(test_id, found):
    assert trial_of(test_id) == found
