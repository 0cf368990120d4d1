"""Data sets: read from files or rows, checked row by row, split and sampled.

Beside the store in the layers: knows of rows, and nothing of runs or of pytest. What reads and checks
(pydantic, and polars for Parquet) is imported when the rows are first asked for.
"""
