"""Frozen records: what the rooms of the house hand to each other."""
