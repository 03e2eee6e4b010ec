"""Checks of producer epochs and coordinator epochs."""
