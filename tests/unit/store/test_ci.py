"""The variables of CI services, as their documentation lists them."""

from __future__ import annotations

import pytest

from pytest_crashlab.store.ci import CiBranches, read_ci


@pytest.mark.parametrize(
    ("env", "branches"),
    [
        ({}, None),
        ({"HOME": "/root"}, None),
        (
            {"GITHUB_ACTIONS": "true", "GITHUB_REF": "refs/heads/main", "GITHUB_SHA": "abc"},
            CiBranches(branch="main", commit="abc"),
        ),
        (
            {"GITHUB_ACTIONS": "true", "GITHUB_REF": "refs/tags/v1", "GITHUB_SHA": "abc"},
            CiBranches(branch=None, commit="abc"),
        ),
        (
            {
                "GITHUB_ACTIONS": "true",
                "GITHUB_REF": "refs/pull/7/merge",
                "GITHUB_HEAD_REF": "feature/x",
                "GITHUB_BASE_REF": "main",
                "GITHUB_SHA": "abc",
            },
            CiBranches(branch="feature/x", target="main", commit="abc", merged=True),
        ),
        (
            {"GITHUB_REF": "refs/heads/main", "GITHUB_HEAD_REF": "evil", "GITHUB_BASE_REF": "main"},
            CiBranches(branch="evil", target="main"),
        ),
        (
            {"GITLAB_CI": "true", "CI_COMMIT_BRANCH": "main", "CI_COMMIT_SHA": "abc"},
            CiBranches(branch="main", commit="abc"),
        ),
        (
            {
                "GITLAB_CI": "true",
                "CI_COMMIT_SHA": "abc",
                "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "feature",
                "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
                "CI_MERGE_REQUEST_DIFF_BASE_SHA": "def",
            },
            CiBranches(branch="feature", target="main", commit="abc", base="def"),
        ),
        (
            {
                "GITLAB_CI": "true",
                "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "feature",
                "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
                "CI_MERGE_REQUEST_EVENT_TYPE": "merged_result",
            },
            CiBranches(branch="feature", target="main", merged=True),
        ),
        (
            {"JENKINS_URL": "http://j", "BRANCH_NAME": "main", "GIT_COMMIT": "abc"},
            CiBranches(branch="main", commit="abc"),
        ),
        (
            {
                "JENKINS_URL": "http://j",
                "BRANCH_NAME": "PR-7",
                "CHANGE_BRANCH": "feature",
                "CHANGE_TARGET": "main",
            },
            CiBranches(branch="feature", target="main"),
        ),
        (
            {
                "TF_BUILD": "True",
                "BUILD_SOURCEBRANCH": "refs/pull/7/merge",
                "SYSTEM_PULLREQUEST_SOURCEBRANCH": "refs/heads/feature",
                "SYSTEM_PULLREQUEST_TARGETBRANCH": "refs/heads/main",
            },
            CiBranches(branch="feature", target="main", merged=True),
        ),
        (
            {"TRAVIS": "true", "TRAVIS_BRANCH": "main", "TRAVIS_PULL_REQUEST": "false"},
            CiBranches(branch="main"),
        ),
        (
            {
                "TRAVIS": "true",
                "TRAVIS_BRANCH": "main",
                "TRAVIS_PULL_REQUEST": "7",
                "TRAVIS_PULL_REQUEST_BRANCH": "feature",
            },
            CiBranches(branch="feature", target="main", merged=True),
        ),
        (
            {
                "BITBUCKET_BUILD_NUMBER": "7",
                "BITBUCKET_BRANCH": "feature",
                "BITBUCKET_PR_DESTINATION_BRANCH": "main",
            },
            CiBranches(branch="feature", target="main"),
        ),
        (
            {"BUILDKITE": "true", "BUILDKITE_BRANCH": "feature", "BUILDKITE_PULL_REQUEST_BASE_BRANCH": ""},
            CiBranches(branch="feature"),
        ),
        (
            {"DRONE": "true", "DRONE_SOURCE_BRANCH": "main", "DRONE_TARGET_BRANCH": "main"},
            CiBranches(branch="main"),
        ),
        (
            {"CIRCLECI": "true", "CIRCLE_BRANCH": "main", "CIRCLE_SHA1": "abc"},
            CiBranches(branch="main", commit="abc"),
        ),
    ],
)
def test_what_a_service_says(env, branches):
    assert read_ci(env) == branches
