"""Checks of producer ids and of the blocks they are granted from."""
