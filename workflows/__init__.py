"""What must happen, in order. No I/O, not even by an import."""
