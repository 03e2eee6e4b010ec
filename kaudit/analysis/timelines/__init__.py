"""Producers' histories in offset order."""
