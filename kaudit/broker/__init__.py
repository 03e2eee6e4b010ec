"""The brokers' rules: releases, producer state, partitions, coordinators, allocation. No I/O, no text for terminals."""
