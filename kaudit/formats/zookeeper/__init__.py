"""ZooKeeper's transaction logs and snapshots, and the block of producer ids they hold."""
