"""Releases of Kafka clients and what each does differently."""
