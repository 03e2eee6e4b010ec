"""Partitions of a live cluster. Only this package of kaudit talks to brokers.

It uses kafka-python 3 (Apache-2.0, pure Python). Its connections (TLS, SASL, back-off) take any
request (kafka.net, kafka.protocol: both public packages), its messages are generated from the definitions of the apache/kafka
project, DescribeProducers and ListTransactions among them, and the answer to a Fetch keeps the record set as the bytes that came.
aiokafka decodes what it fetches, has messages for a part of the protocol only, and needs asyncio around every call.

Only reading requests are sent: Metadata (no topic is made), ListOffsets, Fetch without a session or a group, and Describe requests.
"""
