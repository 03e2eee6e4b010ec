"""Mirrored topics of random histories, beside what became of each record by the generator's own list.

`python -m tests.mirrors --seeds 10000` compares the ledger of `kaudit diff --by records` with it.
"""
