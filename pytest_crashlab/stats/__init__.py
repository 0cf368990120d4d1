"""The arithmetic: arrays in, frozen dataclasses out."""
