"""From input to audit: planning, reading chunks to rows, rows to partitions, partitions to one result."""
