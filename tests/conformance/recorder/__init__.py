"""Asks live brokers of any release what the scenarios ask, and writes attempts and answers as CONTRACT.md section 4 has them.

Not a test: it needs Java and the release's jars. See README.md beside this file.
"""
