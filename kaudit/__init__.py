"""kaudit: diagnostics and log audit for Apache Kafka's idempotent and transactional producers."""

__version__ = "0.1.0"
