"""Runs that no session recorded: trials of other tools, read, checked and sealed in the store.

A reader gives one :class:`~pytest_crashlab.importing.rows.SourceRow` a trial; ``labels`` says what each
label of the source means; ``arms`` makes tables of the rows. Nothing is stored before all of it is right.
"""
