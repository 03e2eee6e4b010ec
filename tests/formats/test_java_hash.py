"""Hash codes as a JVM gives them."""

import pytest

from kaudit.formats.java_hash import string_hash, topic_partition_hash


@pytest.mark.parametrize(
    ("text", "code"),
    [("", 0), ("a", 97), ("hello", 99162322), ("polygenelubricants", -(2**31)), ("€", 8364), ("😀", 1772899)],
)
def test_strings(text, code):
    """Codes as `jshell> "hello".hashCode()` prints them."""
    assert string_hash(text) == code


@pytest.mark.parametrize(
    ("topic", "partition", "code"),
    [("", 0, 961), ("t", 2, 1139), ("hello", 0, 99163283), ("polygenelubricants", 0, -2147482687), ("", 100_000_000, -1194966335)],
)  # fmt: skip
def test_partitions(topic, partition, code):
    """31 x (31 + partition) + the topic's code, in 32 bits (TopicPartition.hashCode)."""
    assert topic_partition_hash(topic, partition) == code
