"""Queries by topic: async functions whose first argument is the transaction they run in."""
