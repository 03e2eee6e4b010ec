"""One partition: its ranges put together, replayed and audited."""
