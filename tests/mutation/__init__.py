"""Mutation testing: do the tests fail when the code is wrong?

    python -m tests.mutation                                   a sample of every room
    python -m tests.mutation sequences checks --sample 200     more of two rooms
    python -m tests.mutation kaudit/audits/replicas/gaps.py --all         every mutant of a file
    python -m tests.mutation --again                           again what was not killed before

A mutant is kaudit with one place of its source changed. It is killed when a test fails, or needs ten times its CPU time, or when
the type check refuses what tests let pass: both are in .ci/run.
Tests are collected once; each mutant is tried in a process forked from there, in which the code of one function is replaced.
Only tests that reach the changed line are run, known from a run under coverage, the fastest first, until one fails.
What runs at import - tables, defaults - is tried in a process that has not imported kaudit yet.

`equivalent.toml` lists the mutants that no test can kill, each with the reason.
"""
