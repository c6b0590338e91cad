"""Thin: take a record, ask the world, keep the answer, return a small record."""
