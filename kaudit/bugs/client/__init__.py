"""Bugs of producers and of brokers that speak Kafka's protocol."""
