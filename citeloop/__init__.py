"""CiteLoop: from a keyword to a measured AI answer. This package does not know that Temporal exists."""
