"""Fuzzing: one target a parser, run for a second in the tests and for as long as you like by hand.

uv run python -m tests.fuzz                        every target, ten seconds each
uv run python -m tests.fuzz records dump_text --seconds 600
uv run python -m tests.fuzz --all --minutes 60       all targets, and on after a finding
uv run python -m tests.fuzz --all --minutes 60 --corpus DIRECTORY     with what earlier runs kept there
uv run --with atheris python -m tests.fuzz --coverage records --seconds 600

What breaks a target is kept as a file under tests/fuzz/findings, and every test run feeds it to its target again.
"""
