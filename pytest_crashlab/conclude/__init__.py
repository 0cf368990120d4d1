"""The end of a session: numbers, comparison, gate and report of a sealed run, here or in a process apart."""
