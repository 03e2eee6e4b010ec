"""The brokers' rules: profiles per release and pure state machines."""
