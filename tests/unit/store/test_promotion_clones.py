from __future__ import annotations

import pytest

from pytest_crashlab.errors import BaselineError
from pytest_crashlab.store.promotion import promote


@pytest.fixture
def feature_clone(repository, tmp_path):
    """A depth-1 clone of one branch: it knows of no main."""
    repository.git("checkout", "-q", "-b", "feature")
    repository.commit("a change")
    return repository.clone(tmp_path / "clone", "--depth", "1", "--branch", "feature")


def test_a_feature_branch_does_not_become_main_where_main_is_unknown(feature_clone):
    run = feature_clone.record("feat")
    with pytest.raises(BaselineError, match="it is of branch feature"):
        promote(feature_clone.store, "main", run.id, cwd=feature_clone.folder, env=feature_clone.env())
    assert feature_clone.store.refs.read("main") is None
    promote(feature_clone.store, "nightly", run.id, cwd=feature_clone.folder, env=feature_clone.env())
    promote(
        feature_clone.store,
        "main",
        run.id,
        cwd=feature_clone.folder,
        env=feature_clone.env(),
        from_branch=True,
    )
    assert feature_clone.store.refs.read("main") == run.id


def test_a_pull_request_does_not_become_its_target(feature_clone):
    ci = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_HEAD_REF": "feature",
        "GITHUB_BASE_REF": "stable",
        "GITHUB_REF": "refs/pull/3/merge",
    }
    run = feature_clone.record("pull", ci=ci)
    with pytest.raises(BaselineError, match="it is of a pull request"):
        promote(feature_clone.store, "stable", run.id, cwd=feature_clone.folder, env=feature_clone.env(**ci))
