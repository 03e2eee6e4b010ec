"""What a run leaves: log directories, attempts, truth."""
