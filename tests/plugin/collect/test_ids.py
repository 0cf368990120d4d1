"""Trial ids and back."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_crashlab.plugin import compat


@pytest.mark.parametrize(
    ("nodeid", "expected"),
    [
        ("t.py::test_x", ("t.py::test_x", None)),
        ("t.py::test_x[b]", ("t.py::test_x[b]", None)),
        ("t.py::test_x[trial2]", ("t.py::test_x", 2)),
        ("t.py::test_x[b-trial12]", ("t.py::test_x[b]", 12)),
        ("t.py::test_x[-trial1]", ("t.py::test_x[]", 1)),
        ("t.py::test_x[trial2-trial1]", ("t.py::test_x[trial2]", 1)),
        ("t.py::test_x[trial0]", ("t.py::test_x[trial0]", None)),
        ("t.py::test_x[mistrial2]", ("t.py::test_x[mistrial2]", None)),
        ("t.py::test_x[trial2] ", ("t.py::test_x[trial2] ", None)),
        ("dir[trial1]/t.py", ("dir[trial1]/t.py", None)),
    ],
)
def test_a_trial_id_is_taken_apart(nodeid, expected):
    assert compat.case_id_of(nodeid) == expected


def test_an_xdist_group_is_dropped_where_there_can_be_one():
    assert compat.case_id_of("t.py::a[x-trial2]@g", grouped=True) == ("t.py::a[x]", 2)
    assert compat.case_id_of("t.py::a@g", grouped=True) == ("t.py::a", None)
    assert compat.case_id_of("t.py::a[b@c-trial1]", grouped=True) == ("t.py::a[b@c]", 1)
    assert compat.case_id_of("t.py::a@g") == ("t.py::a@g", None)


@given(st.text(st.characters(codec="utf-8"), min_size=1), st.integers(1, 10**6))
def test_every_case_id_survives(case_id, trial):
    item = SimpleNamespace(nodeid=case_id)
    compat.set_trial_id(item, trial)
    assert compat.case_id_of(item._nodeid) == (case_id, trial)
