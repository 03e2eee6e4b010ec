"""Releases of Apache Kafka and what each does differently."""
