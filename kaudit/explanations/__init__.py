"""What `kaudit explain` knows: checks, known bugs, published reports, errors, events of logs, and terms."""
