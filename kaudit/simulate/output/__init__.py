"""What a run leaves behind: log directories, attempts, truth."""
