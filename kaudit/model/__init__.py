"""The data that packages pass to one another. No bytes, no I/O, no presentation."""
