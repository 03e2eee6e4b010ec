"""What the rows of a partition show, one package each."""
