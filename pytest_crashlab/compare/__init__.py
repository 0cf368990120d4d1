"""The judgement: rates, pairing, blockers, comparison, policies."""
