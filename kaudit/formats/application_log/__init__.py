"""Logs that brokers and clients write about themselves, in the layouts and the words of their releases."""
