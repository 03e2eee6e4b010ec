"""What kaudit reports: the registry of checks and one module per family."""
