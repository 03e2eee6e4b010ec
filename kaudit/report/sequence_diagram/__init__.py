"""A simulated run as people see it: who sent what when, and what became of the records."""
