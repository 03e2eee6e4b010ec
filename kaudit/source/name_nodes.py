"""Name nodes of an HDFS, by Hadoop's configuration (HADOOP_CONF_DIR, else HADOOP_HOME/etc/hadoop): without hdfs-native, which is an extra."""

import os
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree as ET


def name_nodes(authority: str) -> list[str]:
    """Return HOST:PORT of each name node that may answer for `authority`; none where only the client can know.

    A name service (dfs.ha.namenodes.SERVICE of hdfs-site.xml) has several; an empty authority is that of fs.defaultFS.
    """
    settings = hadoop_settings()
    service = authority or settings.get("fs.defaultFS", "").removeprefix("hdfs://").partition("/")[0]
    if ":" in service:
        return [service]
    nodes = settings.get(f"dfs.ha.namenodes.{service}", "").split(",")
    found = (settings.get(f"dfs.namenode.rpc-address.{service}.{node.strip()}", "") for node in nodes)
    return [address for address in found if ":" in address]


def hadoop_settings() -> Mapping[str, str]:
    """Return what core-site.xml and hdfs-site.xml say; nothing where there are none."""
    home = os.environ.get("HADOOP_HOME")
    directory = os.environ.get("HADOOP_CONF_DIR") or (f"{home}/etc/hadoop" if home else None)
    found: dict[str, str] = {}
    for name in ("core-site.xml", "hdfs-site.xml") if directory else ():
        try:
            root = ET.parse(Path(str(directory), name)).getroot()  # noqa: S314 - the user's own configuration
        except (OSError, ET.ParseError):
            continue  # the client reports it
        for entry in root.iter("property"):
            found[(entry.findtext("name") or "").strip()] = (entry.findtext("value") or "").strip()
    return found
