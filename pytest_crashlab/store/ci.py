"""What a CI service says in its variables about the branch under test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class CiBranches:
    """The branch under test, the branch it is to be merged into, and the commit they speak of.

    ``target`` is set for a pull or merge request; ``merged`` says that what is checked out is the
    result of merging it, so that the commit's first parent is the target's tip; ``base`` is the
    branch point, where the service gives it.
    """

    branch: str | None
    target: str | None = None
    commit: str | None = None
    merged: bool = False
    base: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Service:
    """Names of a service's variables; ``request``/``target`` are set in pull requests only."""

    marker: str
    branch: str
    request_branch: str
    target: str
    commit: str


_SERVICES = (
    _Service(
        marker="GITHUB_ACTIONS",
        branch="GITHUB_REF",
        request_branch="GITHUB_HEAD_REF",
        target="GITHUB_BASE_REF",
        commit="GITHUB_SHA",
    ),
    _Service(
        marker="GITLAB_CI",
        branch="CI_COMMIT_BRANCH",
        request_branch="CI_MERGE_REQUEST_SOURCE_BRANCH_NAME",
        target="CI_MERGE_REQUEST_TARGET_BRANCH_NAME",
        commit="CI_COMMIT_SHA",
    ),
    _Service(
        marker="TF_BUILD",
        branch="BUILD_SOURCEBRANCH",
        request_branch="SYSTEM_PULLREQUEST_SOURCEBRANCH",
        target="SYSTEM_PULLREQUEST_TARGETBRANCH",
        commit="BUILD_SOURCEVERSION",
    ),
    _Service(
        marker="JENKINS_URL",
        branch="BRANCH_NAME",
        request_branch="CHANGE_BRANCH",
        target="CHANGE_TARGET",
        commit="GIT_COMMIT",
    ),
    _Service(
        marker="BITBUCKET_BUILD_NUMBER",
        branch="BITBUCKET_BRANCH",
        request_branch="BITBUCKET_BRANCH",
        target="BITBUCKET_PR_DESTINATION_BRANCH",
        commit="BITBUCKET_COMMIT",
    ),
    _Service(
        marker="BUILDKITE",
        branch="BUILDKITE_BRANCH",
        request_branch="BUILDKITE_BRANCH",
        target="BUILDKITE_PULL_REQUEST_BASE_BRANCH",
        commit="BUILDKITE_COMMIT",
    ),
    _Service(
        marker="CIRCLECI",
        branch="CIRCLE_BRANCH",
        request_branch="CIRCLE_BRANCH",
        target="CIRCLE_TARGET_BRANCH",
        commit="CIRCLE_SHA1",
    ),
    _Service(
        marker="DRONE",
        branch="DRONE_SOURCE_BRANCH",
        request_branch="DRONE_SOURCE_BRANCH",
        target="DRONE_TARGET_BRANCH",
        commit="DRONE_COMMIT_SHA",
    ),
    _Service(
        marker="TRAVIS",
        branch="TRAVIS_BRANCH",
        request_branch="TRAVIS_PULL_REQUEST_BRANCH",
        target="TRAVIS_BRANCH",
        commit="TRAVIS_COMMIT",
    ),
)


def read_ci(env: Mapping[str, str]) -> CiBranches | None:
    """What the variables in ``env`` say, None outside the services that are known.

    A service is recognised by its own marker or by one of its target-branch variables, since
    containers often pass on only some of them.
    """
    for service in _SERVICES:
        if env.get(service.marker) or (env.get(service.target) and service.target != service.branch):
            return _read(service, env)
    return None


def _read(service: _Service, env: Mapping[str, str]) -> CiBranches:
    target = _branch(env.get(service.target))
    if service.marker == "DRONE" and not env.get("DRONE_PULL_REQUEST"):
        target = None  # set for pushes too
    if service.marker == "TRAVIS" and env.get("TRAVIS_PULL_REQUEST", "false") == "false":
        target = None
    commit = env.get(service.commit) or None
    if target is None:
        return CiBranches(branch=_branch(env.get(service.branch)), commit=commit)
    ref = env.get(service.branch, "")
    merged = (
        (ref.startswith("refs/pull/") and ref.endswith("/merge"))
        or env.get("CI_MERGE_REQUEST_EVENT_TYPE") in ("merged_result", "merge_train")
        or service.marker == "TRAVIS"
    )
    return CiBranches(
        branch=_branch(env.get(service.request_branch)),
        target=target,
        commit=commit,
        merged=merged,
        base=env.get("CI_MERGE_REQUEST_DIFF_BASE_SHA") or None,
    )


def _branch(text: str | None) -> str | None:
    """``refs/heads/x`` or ``x`` as ``x``; None for a tag, a pull request or nothing."""
    if not text or text.startswith(("refs/tags/", "refs/pull/", "refs/merge-requests/")):
        return None
    return text.removeprefix("refs/heads/")
