"""Brokers, their replicas, the controller, the coordinator and the allocator of producer ids."""
