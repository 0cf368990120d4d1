"""Which run "main" means in repositories of every shape, built with git."""

from __future__ import annotations

import subprocess

import pytest
from repositories import Repository

MERGE_REF = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_REF": "refs/pull/7/merge",
    "GITHUB_BASE_REF": "main",
    "GITHUB_HEAD_REF": "change",
}


def test_linear_a_change_is_compared_with_its_branch_point(repository):
    repository.record("first")
    repository.commit("second")
    run = repository.record("second")
    point = repository.id()
    repository.git("switch", "-q", "-c", "change")
    repository.commit("changed")
    found = repository.resolve()
    assert found.run.id == run.id
    assert found.distance == 0
    assert found.reason == f"baseline 20261129-second (main, {point[:7]}, your branch point)"
    assert found.base == point
    assert found.notes == ()
    assert [m.id[-6:] for m in found.alternatives] == ["firsta"]
    assert found.load().trials.height == 3


def test_linear_a_later_run_of_main_is_not_the_baseline(repository):
    run = repository.record("first")
    repository.git("switch", "-q", "-c", "change")
    repository.commit("changed")
    repository.git("switch", "-q", "main")
    repository.commit("later")
    repository.record("later")
    repository.git("switch", "-q", "change")
    assert repository.resolve().run.id == run.id


def test_linear_the_walk_goes_back_to_the_last_commit_with_a_run(repository):
    run = repository.record("first")
    first = repository.id()
    repository.commit("second")
    point = repository.commit("third")
    repository.git("switch", "-q", "-c", "change")
    repository.commit("changed")
    found = repository.resolve()
    assert found.run.id == run.id
    assert found.distance == 2
    assert found.reason == (
        f"baseline 20261129-firsta (main, {first[:7]}, 2 commits before your branch point {point[:7]}: "
        "no run there)"
    )


def test_on_main_itself_the_commit_before_counts(repository):
    run = repository.record("first")
    first = repository.id()
    repository.commit("second")
    repository.record("second")
    found = repository.resolve()
    assert (found.run.id, found.distance, found.base) == (run.id, 0, first)
    assert found.reason == f"baseline 20261129-firsta (main, {first[:7]}, the commit before this one)"


def test_on_main_a_run_never_is_its_own_baseline(repository):
    own = repository.record("first")
    (repository.folder / "agent.py").write_text("changing\n")
    found = repository.resolve(own_run=own.id)
    assert found.run is None
    assert found.missing == "never recorded"


def test_dirty_on_main_the_commit_itself_counts(repository):
    repository.record("first")
    second = repository.commit("second")
    run = repository.record("second")
    (repository.folder / "agent.py").write_text("changing\n")
    found = repository.resolve()
    assert found.run.id == run.id
    assert found.reason == f"baseline 20261129-second (main, {second[:7]}, the commit you are changing)"


def test_dirty_runs_on_main_are_no_baseline_unless_promoted(repository):
    clean = repository.record("clean")
    (repository.folder / "agent.py").write_text("trying something\n")
    trial = repository.record("trying")
    assert trial.git["dirty"] is True
    assert trial.git["tree"].startswith(clean.git["tree"] + "+")
    (repository.folder / "agent.py").write_text("trying something else\n")
    assert repository.resolve().run.id == clean.id
    repository.store.refs.promote("main", trial.id, expected=None)
    assert repository.resolve().run.id == trial.id


def test_merge_commits_of_main_are_walked_along_main(repository):
    run = repository.record("first")
    repository.git("switch", "-q", "-c", "other")
    repository.commit("other", "other.py")
    repository.record("other")
    repository.git("switch", "-q", "main")
    repository.commit("second", "main.py")
    repository.git("merge", "-q", "--no-ff", "-m", "merge other", "other")
    merge = repository.id()
    repository.git("switch", "-q", "-c", "change")
    repository.commit("changed")
    found = repository.resolve()
    assert (found.run.id, found.distance, found.base) == (run.id, 2, merge)


def test_merge_of_main_into_the_change_moves_the_branch_point(repository):
    repository.record("first")
    repository.git("switch", "-q", "-c", "change")
    repository.commit("changed", "change.py")
    repository.git("switch", "-q", "main")
    second = repository.commit("second")
    run = repository.record("second")
    repository.git("switch", "-q", "change")
    repository.git("merge", "-q", "--no-ff", "-m", "merge main", "main")
    found = repository.resolve()
    assert (found.run.id, found.base) == (run.id, second)


def test_squash_the_run_of_the_pull_request_becomes_main_s(repository):
    repository.record("first")
    repository.git("switch", "-q", "-c", "feature")
    repository.commit("part one")
    repository.commit("part two")
    paid = repository.record("paid")
    repository.git("switch", "-q", "main")
    repository.git("merge", "-q", "--squash", "feature")
    repository.git("commit", "-q", "-m", "feature, squashed")
    squash = repository.id()
    repository.git("switch", "-q", "-c", "next")
    repository.commit("changed")
    found = repository.resolve()
    assert (found.run.id, found.distance) == (paid.id, 0)
    assert found.reason == (
        f"baseline 20261129-paidaa (feature, same files as main, {squash[:7]}, your branch point)"
    )


def test_squash_the_branch_s_own_run_stays_refused_on_that_branch(repository):
    first = repository.record("first")
    repository.git("switch", "-q", "-c", "feature")
    repository.commit("part one")
    repository.record("paid")
    repository.git("switch", "-q", "main")
    repository.git("merge", "-q", "--squash", "feature")
    repository.git("commit", "-q", "-m", "feature, squashed")
    repository.git("switch", "-q", "feature")
    repository.git("merge", "-q", "-m", "main again", "main")
    repository.commit("more")
    found = repository.resolve()
    assert found.run.id == first.id
    assert [r.why for step in found.walk for r in step.refused] == ["it is of this branch (feature)"]


def test_rebase_follows_the_new_branch_point(repository):
    repository.record("first")
    repository.git("switch", "-q", "-c", "change")
    repository.commit("changed", "change.py")
    repository.record("change")
    repository.git("switch", "-q", "main")
    second = repository.commit("second")
    run = repository.record("second")
    repository.git("switch", "-q", "change")
    assert repository.resolve().run.id != run.id
    repository.git("rebase", "-q", "main")
    found = repository.resolve()
    assert (found.run.id, found.base, found.distance) == (run.id, second, 0)


def test_criss_cross_the_merge_base_on_main_is_taken(repository):
    repository.record("first")
    repository.git("switch", "-q", "-c", "change")
    of_change = repository.commit("changed", "change.py")
    repository.git("switch", "-q", "main")
    of_main = repository.commit("second")
    run = repository.record("second")
    repository.git("merge", "-q", "--no-ff", "-m", "change into main", of_change)
    repository.git("switch", "-q", "change")
    repository.git("merge", "-q", "--no-ff", "-m", "main into change", of_main)
    repository.commit("changed again", "change.py")
    bases = repository.git("merge-base", "--all", "HEAD", "main").split()
    assert set(bases) == {of_change, of_main}
    found = repository.resolve()
    assert (found.run.id, found.base) == (run.id, of_main)


def test_depth_1_falls_back_to_the_newest_promotion_with_a_note(repository, tmp_path):
    run = repository.record("first")
    repository.store.refs.promote("main", run.id, expected=None)
    repository.git("switch", "-q", "-c", "change")
    repository.commit("changed")
    clone = repository.clone(tmp_path / "clone", "--depth=1", "--branch=change")
    clone.git("fetch", "-q", "--depth=1", "origin", "main:refs/remotes/origin/main")
    found = clone.resolve()
    assert (found.run.id, found.distance) == (run.id, None)
    assert [n.text for n in found.notes] == [
        "The baseline is not an ancestor of this change (shallow clone)."
    ]
    assert found.reason == (
        "baseline 20261129-firsta (main, its newest promotion: no common history with main in this clone)"
    )


def test_depth_1_without_a_promotion_says_how_to_get_history(repository, tmp_path):
    repository.record("first")
    repository.git("switch", "-q", "-c", "change")
    repository.commit("changed")
    found = repository.clone(tmp_path / "clone", "--depth=1", "--branch=change").resolve()
    assert (found.run, found.missing) == (None, "not in this clone")
    assert "1 run of it is at commits that are not in this clone (shallow clone)" in found.reason
    assert "git fetch --unshallow" in found.reason


def test_depth_1_on_main_finds_a_run_of_the_very_commit_before(repository, tmp_path):
    run = repository.record("first")
    repository.commit("second")
    found = repository.clone(tmp_path / "clone", "--depth=1").resolve()
    assert (found.run.id, found.distance) == (run.id, 0)


@pytest.mark.parametrize("depth", [["--depth=1"], []])
@pytest.mark.parametrize("how", ["variables", "ref"])
def test_github_merge_checkout_is_compared_with_its_first_parent(repository, tmp_path, depth, how):
    repository.record("first")
    repository.git("switch", "-q", "-c", "change")
    repository.commit("changed", "change.py")
    repository.git("switch", "-q", "main")
    second = repository.commit("second")
    run = repository.record("second")
    repository.git("switch", "-q", "--detach", "main")
    repository.git("merge", "-q", "--no-ff", "-m", "Merge change into main", "change")
    merge = repository.id()
    repository.git("update-ref", "refs/pull/7/merge", merge)
    clone = Repository.make(tmp_path / "checkout", repository.store.root)
    clone.git("remote", "add", "origin", f"file://{repository.folder}")
    place = "refs/remotes/pull/7/merge" if how == "ref" else "refs/other"
    clone.git("fetch", "-q", *depth, "origin", f"+{merge}:{place}")
    clone.git("checkout", "-q", "--detach", merge)
    ci = {**MERGE_REF, "GITHUB_SHA": merge} if how == "variables" else {}
    if depth:
        assert clone.git("rev-list", "--count", "HEAD") == "1"
    found = clone.resolve(ci=ci)
    assert (found.run.id, found.base, found.distance) == (run.id, second, 0)
    assert found.reason == (
        f"baseline 20261129-second (main, {second[:7]}, the commit this pull request merges into)"
    )


def test_github_merge_checkout_does_not_take_the_run_of_its_own_pull_request(repository):
    run = repository.record("first")
    repository.git("switch", "-q", "-c", "change")
    repository.commit("changed", "change.py")
    repository.git("switch", "-q", "main")
    repository.git("switch", "-q", "--detach")
    repository.git("merge", "-q", "--no-ff", "-m", "Merge change into main", "change")
    mine = repository.record("mine", ci=MERGE_REF)
    assert (mine.git["branch"], mine.git["pull_request"]) == ("change", True)
    assert repository.resolve(ci=MERGE_REF).run.id == run.id


def test_github_merge_checkout_and_another_name_than_the_target(repository):
    old = repository.record("first")
    repository.git("branch", "release/2.x")
    second = repository.commit("second")
    repository.record("second")
    repository.git("switch", "-q", "-c", "change")
    repository.commit("changed", "change.py")
    repository.git("switch", "-q", "--detach", "main")
    repository.git("merge", "-q", "--no-ff", "-m", "Merge change into main", "change")
    assert repository.resolve("release/2.x", ci=MERGE_REF).run.id == old.id
    assert repository.resolve("main", ci=MERGE_REF).base == second
    # without a service's word the first parent shows where it is to be merged
    repository.git("update-ref", "refs/remotes/pull/7/merge", "HEAD")
    assert repository.resolve("release/2.x").run.id == old.id
    assert repository.resolve("main").base == second


def test_a_merge_commit_of_the_change_itself_is_no_merge_checkout(repository):
    run = repository.record("first")
    repository.git("switch", "-q", "-c", "change")
    repository.commit("changed", "change.py")
    repository.git("switch", "-q", "-c", "side", "main")
    repository.commit("side", "side.py")
    repository.git("switch", "-q", "change")
    repository.git("merge", "-q", "--no-ff", "-m", "merge side", "side")
    found = repository.resolve()
    assert (found.run.id, found.base) == (run.id, repository.id("main"))


def test_detached_at_a_change(repository):
    run = repository.record("first")
    repository.git("switch", "-q", "--detach")
    repository.commit("changed")
    found = repository.resolve()
    assert (found.run.id, found.base) == (run.id, repository.id("main"))


def test_detached_at_a_commit_of_main_is_compared_with_the_one_before(repository):
    run = repository.record("first")
    repository.commit("second")
    repository.record("second")
    repository.commit("third")
    repository.git("checkout", "-q", "--detach", "main~1")
    assert repository.resolve().run.id == run.id


def test_detached_in_gitlab_the_branch_is_known_from_its_variable(repository):
    run = repository.record("first")
    second = repository.commit("second")
    repository.git("checkout", "-q", "--detach")
    ci = {"GITLAB_CI": "true", "CI_COMMIT_BRANCH": "main", "CI_COMMIT_SHA": second}
    assert repository.head(**ci).branch == "main"
    assert repository.resolve(ci=ci).run.id == run.id
    other = {**ci, "CI_COMMIT_SHA": "0" * 40}
    assert repository.head(**other).branch is None


def test_a_gitlab_merge_request_whose_clone_lacks_the_target(repository, tmp_path):
    point = repository.id()
    run = repository.record("first")
    repository.git("switch", "-q", "-c", "change")
    repository.commit("changed")
    clone = repository.clone(tmp_path / "clone", "--depth=1", "--branch=change")
    ci = {
        "GITLAB_CI": "true",
        "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "change",
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": point,
    }
    found = clone.resolve(ci=ci)
    assert (found.run.id, found.base, found.distance) == (run.id, point, 0)


def test_release_branch_is_a_baseline_of_its_own(repository):
    cut = repository.record("cut")
    repository.git("switch", "-q", "-c", "release/2.x")
    repository.commit("fix one")
    release = repository.record("release")
    repository.git("switch", "-q", "main")
    repository.commit("second")
    repository.record("second")
    repository.git("switch", "-q", "-c", "hotfix", "release/2.x")
    repository.commit("fix two")
    assert repository.resolve("release/2.x").run.id == release.id
    assert repository.resolve("main").run.id == cut.id


def test_a_new_release_branch_begins_with_the_run_of_the_commit_it_was_cut_from(repository):
    cut = repository.record("cut")
    repository.git("branch", "release/2.x")
    repository.git("switch", "-q", "-c", "hotfix", "release/2.x")
    repository.commit("fix")
    found = repository.resolve("release/2.x")
    assert found.run.id == cut.id
    assert "(main, same files as release/2.x, " in found.reason


def test_fork_the_upstream_remote_counts_when_origin_is_stale(repository, tmp_path):
    repository.record("first")
    fork = repository.clone(tmp_path / "fork")
    second = repository.commit("second")
    run = repository.record("second")
    fork.git("remote", "add", "upstream", f"file://{repository.folder}")
    fork.git("fetch", "-q", "upstream")
    fork.git("switch", "-q", "-c", "change", "upstream/main")
    fork.commit("changed")
    assert fork.id("origin/main") != second
    found = fork.resolve()
    assert (found.run.id, found.base) == (run.id, second)


def test_fork_a_pull_request_from_a_branch_that_is_called_main_too(repository):
    run = repository.record("first")
    repository.commit("changed", "change.py")
    ci = {**MERGE_REF, "GITHUB_HEAD_REF": "main"}
    repository.git("switch", "-q", "--detach")
    repository.git("branch", "-f", "main", "main~1")
    head = repository.head(**ci)
    assert (head.branch, head.pull_request) == ("main", True)
    mine = repository.record("mine", ci=ci)
    found = repository.resolve(ci=ci)
    assert found.run.id == run.id
    assert mine.id not in [m.id for m in found.alternatives]
    repository.git("switch", "-q", "main")
    repository.commit("next")
    assert repository.resolve().run.id == run.id


def test_no_git_takes_the_newest_promotion(tmp_path):
    folder = tmp_path / "plain"
    folder.mkdir()
    plain = Repository(folder, tmp_path / "store")
    old, new = plain.record("old", git=None), plain.record("new", git=None)
    plain.store.refs.promote("main", new.id, expected=None)
    plain.store.refs.promote("main", old.id, expected=new.id)
    found = plain.resolve()
    assert found.run.id == old.id
    assert found.reason == "baseline 20261129-oldaaa (main, its newest promotion: no git repository here)"
    assert (found.distance, found.notes, found.base) == (None, (), None)
    assert [m.id for m in found.alternatives] == [new.id]


def test_a_repository_without_a_commit_is_like_no_git(tmp_path):
    empty = Repository.make(tmp_path / "empty", tmp_path / "store")
    run = empty.record("one", git=None)
    empty.store.refs.promote("main", run.id, expected=None)
    assert empty.head() is None
    assert empty.resolve().run.id == run.id


def test_a_name_that_is_no_branch_is_its_newest_promotion(repository):
    run = repository.record("first")
    repository.store.refs.promote("nightly", run.id, expected=None)
    repository.commit("second")
    repository.record("second")
    found = repository.resolve("nightly")
    assert found.run.id == run.id
    assert (
        found.reason
        == "baseline 20261129-firsta (nightly, its newest promotion: no branch is called nightly)"
    )
    assert found.notes == ()


def test_a_name_that_is_no_branch_stands_for_the_pull_request_s_target(repository):
    run = repository.record("first")
    repository.store.refs.promote("stable", run.id, expected=None)
    repository.git("switch", "-q", "-c", "change")
    repository.commit("changed")
    found = repository.resolve("stable", ci={"GITHUB_BASE_REF": "main", "GITHUB_HEAD_REF": "change"})
    assert (found.run.id, found.distance) == (run.id, 0)


def test_several_runs_of_one_commit_the_newest_promoted_else_the_newest(repository):
    runs = [repository.record(name) for name in ("one", "two", "three")]
    repository.git("switch", "-q", "-c", "change")
    repository.commit("changed")
    assert repository.resolve().run.id == runs[2].id
    repository.store.refs.promote("main", runs[0].id, expected=None)
    assert repository.resolve().run.id == runs[0].id
    repository.store.refs.promote("main", runs[1].id, expected=runs[0].id)
    found = repository.resolve()
    assert found.run.id == runs[1].id
    assert [m.id for m in found.alternatives] == [runs[0].id, runs[2].id]


def test_nothing_before_the_branch_point_falls_back_and_says_how_far_ahead(repository):
    repository.git("switch", "-q", "-c", "change")
    repository.commit("changed", "change.py")
    repository.git("switch", "-q", "main")
    for number in range(3):
        repository.commit(f"later {number}")
    run = repository.record("later")
    repository.git("switch", "-q", "change")
    found = repository.resolve()
    assert (found.run, found.missing) == (None, "never recorded")
    assert (
        "'crashlab baseline promote main 20261129-latera' would make its newest run the baseline"
        in found.reason
    )
    repository.store.refs.promote("main", run.id, expected=None)
    found = repository.resolve()
    assert found.run.id == run.id
    assert [n.text for n in found.notes] == [
        "The baseline is not an ancestor of this change (3 commits ahead)."
    ]


def test_the_only_commit_falls_back_to_a_run_of_itself_and_says_so(repository):
    run = repository.record("first")
    repository.store.refs.promote("main", run.id, expected=None)
    found = repository.resolve()
    assert found.run.id == run.id
    assert "there is no commit before this one" in found.reason
    assert [n.code for n in found.notes] == ["baseline_same_commit"]


def test_a_baseline_far_back_is_a_note(repository):
    run = repository.record("first")
    for number in range(21):
        repository.git("commit", "-q", "--allow-empty", "-m", f"step {number}")
        (repository.folder / "agent.py").write_text(f"{number}")
        repository.git("commit", "-q", "-a", "--amend", "-m", f"step {number}")
    repository.git("switch", "-q", "-c", "change")
    repository.commit("changed")
    found = repository.resolve()
    assert (found.run.id, found.distance) == (run.id, 21)
    assert [n.text for n in found.notes] == [
        f"The baseline is 21 commits before your branch point {repository.id('main')[:7]}."
    ]


def test_the_walk_ends_after_200_commits(repository):
    repository.record("first")
    lines = []
    for number in range(201):
        lines += [
            "commit refs/heads/main",
            f"committer A <a@example.org> {1_800_000_000 + number} +0000",
            "data 1",
            "x",
            *(["from refs/heads/main^0"] if number == 0 else []),
            "M 100644 inline agent.py",
            f"data {len(str(number))}",
            str(number),
        ]
    subprocess.run(
        ["git", "fast-import", "--quiet"],
        cwd=repository.folder,
        input="\n".join([*lines, ""]).encode(),
        check=True,
        env=repository.env(),
    )
    repository.git("reset", "-q", "--hard", "main")
    repository.git("switch", "-q", "-c", "change", "main~1")
    repository.commit("changed")
    assert repository.resolve().run is None
    repository.git("switch", "-q", "-c", "nearer", "main~2")
    repository.commit("changed")
    assert repository.resolve().distance == 199


def test_variables_of_a_hook_do_not_lead_to_another_repository(repository, tmp_path):
    run = repository.record("first")
    repository.git("switch", "-q", "-c", "change")
    repository.commit("changed")
    elsewhere = Repository.make(tmp_path / "elsewhere", tmp_path / "store2")
    elsewhere.commit("other")
    ci = {"GIT_DIR": str(elsewhere.folder / ".git"), "GIT_WORK_TREE": str(elsewhere.folder)}
    assert repository.resolve(ci=ci).run.id == run.id


def test_looking_writes_nothing_into_the_repository(repository):
    repository.record("first")
    index = repository.folder / ".git" / "index"
    (repository.folder / "agent.py").touch()
    before = index.stat().st_mtime_ns, index.read_bytes()
    repository.resolve()
    assert (index.stat().st_mtime_ns, index.read_bytes()) == before


@pytest.mark.parametrize(
    ("name", "dirty"),
    [("new_module.py", True), ("report.xml", False), (".venv/lib/mod.py", False), ("pkg/new.py", True)],
)
def test_files_that_git_does_not_know(repository, name, dirty):
    (repository.folder / ".venv").mkdir()
    (repository.folder / ".venv" / "pyvenv.cfg").write_text("home = /usr\n")
    path = repository.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x = 1\n")
    assert repository.head().dirty is dirty


def test_the_tree_of_a_changed_checkout_tells_contents_apart(repository):
    clean = repository.head().tree
    trees = set()
    for text in ("one", "two", "one"):
        (repository.folder / "agent.py").write_text(text)
        trees.add(repository.head().tree)
    (repository.folder / "agent.py").unlink()
    trees.add(repository.head().tree)
    assert len(trees) == 3
    assert all(tree.startswith(f"{clean}+") for tree in trees)
    repository.git("checkout", "-q", "--", "agent.py")
    assert repository.head().tree == clean == repository.git("rev-parse", "HEAD^{tree}")
