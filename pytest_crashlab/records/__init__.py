"""The nouns: outcome, check, case, trial, usage, run, comparison. Standard library only."""
