"""The broker versions a scan goes by."""

import pytest

from kaudit.broker.releases.profile import VersionRange
from kaudit.broker.releases.version import Version
from kaudit.errors import UsageError
from kaudit.model.result import BrokerVersions
from kaudit.scanning.versions import given_version, inferred_versions, newest_profile
from kaudit.source.layout import Evidence, Layout


@pytest.mark.parametrize(("at_most", "newest"), [(None, "4.4.0"), ("2.4.0", "2.4.0"), ("4.3.0", "4.3.0")])
def test_the_rules_of_the_newest_release_that_brokers_may_have(at_most, newest):
    assert str(newest_profile(BrokerVersions("auto", None, "0.11.0.0", at_most)).version) == newest


@pytest.mark.parametrize(("requested", "version"), [("2.4.0", "2.4.0"), ("3.9", "3.9"), ("4.3.0", "4.3.0")])
def test_the_version_that_the_user_gives(requested, version):
    found, stated = given_version(requested)
    assert found == VersionRange(Version.parse(version), Version.parse(version))
    assert stated == BrokerVersions(requested, version, version, version, ("given with --broker-version",))


def test_a_version_that_there_is_not():
    with pytest.raises(UsageError, match=r"1\.99"):
        given_version("1.99.0")


@pytest.mark.parametrize(
    ("brokers", "at_least", "at_most", "named"),
    [
        (["3.9"], "3.9.0", "3.9.2", "3.9"),
        (["4.0", "3.8"], "3.8.0", "4.0.2", "4.0 and 3.8"),
        (["3.8", "4.0", "3.9"], "3.8.0", "4.0.2", "3.8 and 4.0 and 3.9"),
        (["4.9"], "4.4.0", "4.4.0", "4.9"),  # newer than all known
        (["3.99"], "3.9.2", "3.9.2", "3.99"),  # between two lines
        (["0.10"], "0.11.0.0", "0.11.0.0", "0.10"),  # older than all known
    ],
)
def test_live_brokers_have_the_releases_of_their_lines(brokers, at_least, at_most, named):
    layout = Layout([], evidence=Evidence(broker_versions=brokers))
    found, stated = inferred_versions(layout, [], lambda _: {}, flexible_transaction_value=True)
    assert (str(found.at_least), str(found.at_most)) == (at_least, at_most)
    assert stated == BrokerVersions(
        "auto", None, at_least, at_most, (f"the brokers take requests as those of {named} do",)
    )
