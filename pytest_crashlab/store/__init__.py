"""What stays: layout, schema, journal, runs, refs, ledger, baselines."""
