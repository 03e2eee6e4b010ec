"""Every record of a log as a row of its identity, in files: what `diff --by records`, `dedup` and `scan --depth records` compare."""
