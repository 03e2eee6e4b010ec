"""Which versions of requests releases answer: the columns of Kafka's protocol guide for some of them."""

import pytest

from kaudit.broker.releases.request_versions import versions_in
from kaudit.broker.releases.version import Version

OPS = ("produce", "init_producer_id", "add_partitions", "end_txn", "txn_offset_commit", "write_marker")


@pytest.mark.parametrize(
    ("release", "versions"),
    [
        # Protocol.java of 0.11 and the requests' schemaVersions() of 2.3; "validVersions" in *Request.json of 3.9 and 4.0
        ("0.11.0.0", [(0, 3), (0, 0), (0, 0), (0, 0), (0, 0), (0, 0)]),
        ("0.11.0.3", [(0, 3), (0, 0), (0, 0), (0, 0), (0, 0), (0, 0)]),
        ("2.3.1", [(0, 7), (0, 1), (0, 1), (0, 1), (0, 2), (0, 0)]),
        ("2.7.2", [(0, 8), (0, 4), (0, 2), (0, 2), (0, 3), (0, 0)]),
        ("3.5.2", [(0, 9), (0, 4), (0, 3), (0, 3), (0, 3), (0, 1)]),
        ("3.9.1", [(0, 11), (0, 5), (0, 5), (0, 4), (0, 4), (0, 1)]),
        ("4.0.0", [(3, 12), (0, 5), (0, 5), (0, 5), (0, 5), (1, 1)]),
    ],
)
def test_the_versions_that_a_release_answers(release, versions):
    assert dict(versions_in(Version.parse(release))) == dict(zip(OPS, versions, strict=True))
