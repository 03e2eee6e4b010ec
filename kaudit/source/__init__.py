"""Where bytes live: log directories, single files, chunk planning. No Kafka semantics."""
