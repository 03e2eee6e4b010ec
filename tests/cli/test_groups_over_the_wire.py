"""What a scan, `groups` and `transactions` say of a cluster over kafka:// is what they say of its directories."""

import json
from pathlib import Path

import pytest

from tests.formats.log.raw_batches import batches
from tests.source.kafka.fake_broker import FakeBroker

ROOT = Path(__file__).parents[2]


def partitions(sample):
    """The batches of each partition of a sample, by topic and number."""
    found: dict[tuple[str, int], list[bytes]] = {}
    for log in sorted((ROOT / "samples" / sample).glob("*-*/*.log")):
        topic, _, number = log.parent.name.rpartition("-")
        found.setdefault((topic, int(number)), []).extend(batch for _, batch in batches(log.read_bytes()))
    return found


def of_groups(outcome):
    """Code, message and evidence of the findings about groups: places in files are left out over the wire."""
    found = json.loads(outcome.out)["findings"]
    return sorted(
        (finding["code"], finding["message"], json.dumps(finding["evidence"], sort_keys=True))
        for finding in found
        if finding["code"].startswith("KA9")
    )


@pytest.mark.parametrize("sample", ["exactly-once", "committed-offsets", "share-groups", "outputs-alone"])
@pytest.mark.parametrize("command", ["scan", "transactions"])
def test_findings(kaudit, command, sample):
    logs = partitions(sample)
    ours = of_groups(kaudit(command, "-q", "--output-format", "json", ROOT / "samples" / sample))
    with FakeBroker(logs) as broker:
        urls = [f"kafka://{broker.address}/{topic}" for topic in sorted({topic for topic, _ in logs})]
        theirs = of_groups(kaudit(command, "-q", "--output-format", "json", *urls))
    assert theirs == ours
    assert ours or (command, sample) in {("transactions", "committed-offsets"), ("transactions", "share-groups")}


@pytest.mark.parametrize("sample", ["exactly-once", "committed-offsets"])
def test_groups(kaudit, sample):
    logs = partitions(sample)
    ours = json.loads(kaudit("groups", "--output-format", "json", ROOT / "samples" / sample).out)
    with FakeBroker(logs) as broker:
        urls = [f"kafka://{broker.address}/{topic}" for topic in sorted({topic for topic, _ in logs})]
        theirs = json.loads(kaudit("groups", "--output-format", "json", *urls).out)
    assert theirs["rows"] == ours["rows"]
    assert len(ours["rows"]) > 4
