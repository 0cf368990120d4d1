"""What a comparison may claim: that a change did it, or that equal sources were measured twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crashlab.records.comparison import Claim, ClaimKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_crashlab.store import Manifest


def claim_of(baseline: Manifest, candidate: Manifest) -> Claim:
    """What differs between the two runs of what they declare: target files, configuration, prompt, model.

    Without digests of the target in both runs, and with everything else the same, it is not known.
    """
    differing = [
        what
        for what, a, b in (
            ("the target's source", baseline.target_digest, candidate.target_digest),
            (_configuration(baseline, candidate), baseline.config_digest, candidate.config_digest),
            ("the prompt", baseline.prompt, candidate.prompt),
            ("the model", baseline.model, candidate.model),
        )
        if a != b and not (what == "the target's source" and None in (a, b))
    ]
    if differing:
        return Claim(kind=ClaimKind.CHANGE, text=f"What changed: {_and(differing)}.")
    if baseline.target_digest is None or candidate.target_digest is None:
        return Claim(
            kind=ClaimKind.UNKNOWN,
            text="What changed between the runs is not known: name it with crashlab_target.",
        )
    return Claim(
        kind=ClaimKind.SAME_SOURCE,
        text="Same-source control: target, settings, prompt and model are the same: no change is measured.",
    )


def _and(parts: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def _configuration(baseline: Manifest, candidate: Manifest) -> str:
    """``the declared configuration (temperature)``."""
    before, now = baseline.run_config, candidate.run_config
    keys = sorted(key for key in {*before, *now} if before.get(key) != now.get(key))
    return f"the declared configuration ({', '.join(keys)})" if keys else "the declared configuration"


def are_interleaved(baseline: Manifest, candidate: Manifest) -> bool:
    """Whether the trials of both ran in turn; an ordinary session's never do."""
    return baseline.interleaved is not None and baseline.interleaved == candidate.interleaved


def share_seeds(baseline: Manifest, candidate: Manifest) -> bool:
    """Whether trial i of one and trial i of the other are a pair: the candidate took over the seed."""
    return (
        candidate.seed_source == "baseline" and candidate.seed is not None and candidate.seed == baseline.seed
    )
