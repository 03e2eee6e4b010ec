"""Checks of producer ids and of the blocks they were allocated from."""
