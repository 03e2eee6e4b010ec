"""Topics compared record by record, wherever their records lie: `diff --by records`."""
