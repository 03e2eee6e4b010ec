"""Input: local files, HDFS, S3, texts and live brokers; finds partitions and segments. No Kafka semantics beyond names."""
