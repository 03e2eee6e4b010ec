"""Decoding what lies in a log directory into rows, one by one, for `kaudit inspect`."""
