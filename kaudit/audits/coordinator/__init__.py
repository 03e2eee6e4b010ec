"""What __transaction_state decided."""
