"""Nouns of the domain. No bytes, no I/O, no presentation."""
