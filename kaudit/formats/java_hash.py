"""Hash codes as Java computes them: Kafka places and orders things by them."""


def string_hash(text: str) -> int:
    """Return String.hashCode of `text`, -2^31 to 2^31 - 1."""
    units = text.encode("utf-16-be", "surrogatepass")
    code = 0
    for index in range(0, len(units), 2):
        code = (31 * code + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    return _signed(code)


def topic_partition_hash(topic: str, partition: int) -> int:
    """Return org.apache.kafka.common.TopicPartition.hashCode, -2^31 to 2^31 - 1."""
    return _signed((31 * (31 + partition) + string_hash(topic)) & 0xFFFFFFFF)


def _signed(code: int) -> int:
    return code - (1 << 32) if code >= 1 << 31 else code
