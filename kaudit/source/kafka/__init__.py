"""Partitions of a live cluster: what talks to brokers, and nothing else in kaudit does.

Of the maintained Python clients kafka-python 3 is used (Apache-2.0, pure Python). Its connections (TLS, SASL, back-off) take any
request (kafka.net, kafka.protocol: both public packages), its messages are generated from the definitions of the apache/kafka
project, DescribeProducers and ListTransactions among them, and the answer to a Fetch keeps the record set as the bytes that came.
aiokafka decodes what it fetches, has messages for a part of the protocol only, and needs asyncio around every call.

Only what reads is asked for: Metadata (no topic is made), ListOffsets, Fetch without a session or a group, and Describe requests.
"""
