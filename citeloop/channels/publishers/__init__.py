"""Dialects that publish. One kind of site, one file; a new one is added to SiteKind and to outside.py."""
