"""Under xdist every way of distributing tests gives the same trials."""

from __future__ import annotations

import json

import pytest

SUITE = {
    "test_one": """
import unittest
import pytest
@pytest.fixture(scope="module", params=[1, 2])
def m(request): pass
def test_a(): pass
def test_b(m): pass
def test_c(m): assert 0
@pytest.mark.skip
def test_d(): pass
@pytest.mark.parametrize("x", sorted(range(3)))
def test_e(x): assert x
class TestA:
    def test_a(self): pass
    def test_b(self): pass
class TestU(unittest.TestCase):
    @classmethod
    def setUpClass(cls): pass
    def test_a(self): pass
    def test_b(self): assert 0
""",
    "test_two": "def test_f(): pass\ndef test_g(): pass",
}


@pytest.fixture(autouse=True)
def suite(pytester):
    pytester.makepyfile(**SUITE)


def test_each_distribution_gives_every_trial_once(session):
    plain = session(k=0)
    for dist in ("load", "loadfile", "loadscope", "worksteal"):
        ran = session(f"--dist={dist}", workers=2)
        assert ran.trials == {key: 3 * count for key, count in plain.trials.items()}, dist
        assert {case: sorted(numbers) for case, numbers in ran.numbers.items()} == {
            case: [1, 2, 3] for case in plain.numbers
        }, dist


@pytest.mark.parametrize("order", ["rounds", "cases"])
def test_workers_and_a_single_process_make_the_same_plan(session, pytester, order):
    alone = session(f"--order={order}").plan
    session(f"--order={order}", workers=2)
    plans = [json.loads(path.read_text()) for path in sorted(pytester.path.glob("plan-gw*.json"))]
    assert plans == [alone, alone]
