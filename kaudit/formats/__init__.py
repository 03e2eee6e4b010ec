"""Decodes the formats of brokers, ZooKeeper and their tools from buffers to the rows of model/; opens no files."""
