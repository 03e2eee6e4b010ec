"""The other side of a log, modelled: producers, brokers, replicas and coordinator in simulated time."""
