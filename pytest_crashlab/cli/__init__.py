"""The crashlab command: one module per verb."""
