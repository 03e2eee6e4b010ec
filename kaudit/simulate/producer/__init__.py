"""A producer after the Java client, one module per part of it."""
