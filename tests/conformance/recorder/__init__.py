"""Asks live brokers of any release what the scenarios ask, and writes attempts and answers as docs/guide.md has them.

Not a test: it needs Java and Maven. See README.md beside this file.
"""
