"""Bugs of Kafka brokers."""
