"""KA912: starts of share groups that jumped; the cases are in test_share_records_archived.py."""

from tests.checks.groups.scanned import of_groups, scanned
from tests.checks.groups.test_share_records_archived import share_state
from tests.commits import share_log


def test_retention_overtook_the_group(tmp_path):
    content = share_log((1, 0, []), (-1, 0, [(0, 9, 2, 1)]), (-1, 40, []))
    (found,) = of_groups(scanned(share_state(tmp_path, content)))
    assert found.message == (
        "the start offset of share group workers on topic AAECAwQFBgcICQoLDA0ODw-0 jumped from 10 to 40, over 30 offsets "
        "neither acknowledged nor archived"
    )
    assert (found.topic, found.offset) == ("__share_group_state", 2)
