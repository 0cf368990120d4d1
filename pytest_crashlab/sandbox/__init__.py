"""Where the target runs: backends behind one protocol, and who saw what ended a process."""
