"""What brokers, ZooKeeper and their tools write, decoded from buffers to the rows of model/; nothing here opens a file."""
