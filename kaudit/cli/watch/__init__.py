"""`kaudit watch`: rounds, output, metrics, state file, the end."""
