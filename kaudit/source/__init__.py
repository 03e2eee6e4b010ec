"""Where the input lies: local files, HDFS, S3; which partitions and segments it holds. No Kafka semantics beyond names."""
