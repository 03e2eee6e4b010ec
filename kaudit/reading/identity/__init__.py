"""When two records are the same one, whatever log, batch and offset each has: the definition for `diff --by records` and `dedup`."""
