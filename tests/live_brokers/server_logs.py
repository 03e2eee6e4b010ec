"""Server logs as a release's own config/log4j.properties or config/log4j2.yaml has them written, in `logs` below a broker's home."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kaudit.broker.releases.version import Version
from tests.live_brokers.jars import logging_jars_of

Levels = Literal["stock", "debug"]
"""`debug` adds what ProducerStateManager, Partition and the transaction coordinator log at DEBUG."""
FOLDER = "logs"
_PATTERN = "[%d] %p %m (%c)%n"
_QUIET_STATE_CHANGES_FROM = Version.parse("2.6.0")
_LOG4J2_FROM = Version.parse("4.0.0")
_FILES = ("server", "state-change", "controller", "log-cleaner", "kafka-request")
_DEBUGGED = (
    "kafka.log.ProducerStateManager",
    "kafka.log.ProducerAppendInfo",
    "org.apache.kafka.storage.internals.log.ProducerStateManager",
    "org.apache.kafka.storage.internals.log.ProducerAppendInfo",
    "kafka.coordinator.transaction",
    "kafka.server.ReplicaManager",
)


@dataclass(frozen=True)
class Logging:
    """Java arguments and what to put before the class path."""

    arguments: tuple[str, ...]
    class_path: str


def logging_of(version: str, home: Path, levels: Levels) -> Logging:
    """Write the configuration below `home`; return how to start a broker of `version` with it."""
    release = Version.parse(version)
    loggers = _loggers(release)
    if levels == "debug":
        loggers |= dict.fromkeys(_DEBUGGED, ("DEBUG", ""))
    jars = logging_jars_of(version)
    path = f"{jars.resolve()}/*:" if jars else ""
    if release >= _LOG4J2_FROM:
        written = home / "log4j2.properties"
        written.write_text(_log4j2(home / FOLDER, loggers))
        return Logging((f"-Dlog4j2.configurationFile={written}",), path)
    written = home / "server-log4j.properties"
    written.write_text(_log4j(home / FOLDER, loggers))
    return Logging((f"-Dlog4j.configuration=file:{written}",), path)


def _loggers(release: Version) -> dict[str, tuple[str, str]]:
    """(level, file of its own or none) by logger."""
    loggers = {
        "kafka": ("INFO", ""),
        "org.apache.kafka": ("INFO", ""),
        "kafka.request.logger": ("WARN", "kafka-request"),
        "kafka.network.RequestChannel$": ("WARN", "kafka-request"),
        "kafka.log.LogCleaner": ("INFO", "log-cleaner"),
        "state.change.logger": ("INFO" if release >= _QUIET_STATE_CHANGES_FROM else "TRACE", "state-change"),
        "org.apache.kafka.controller": ("INFO", "controller"),
    }
    if release < _LOG4J2_FROM:
        loggers["kafka.controller"] = ("TRACE", "controller")
    return loggers


def _log4j(folder: Path, loggers: dict[str, tuple[str, str]]) -> str:
    lines = ["log4j.rootLogger=INFO, server"]
    for name in _FILES:
        lines += [
            f"log4j.appender.{name}=org.apache.log4j.DailyRollingFileAppender",
            f"log4j.appender.{name}.DatePattern='.'yyyy-MM-dd-HH",
            f"log4j.appender.{name}.File={folder}/{name}.log",
            f"log4j.appender.{name}.layout=org.apache.log4j.PatternLayout",
            f"log4j.appender.{name}.layout.ConversionPattern={_PATTERN}",
        ]
    for logger, (level, file) in loggers.items():
        lines.append(f"log4j.logger.{logger}={level}{f', {file}' if file else ''}")
        if file:
            lines.append(f"log4j.additivity.{logger}=false")
    return "\n".join(lines) + "\n"


def _log4j2(folder: Path, loggers: dict[str, tuple[str, str]]) -> str:
    lines = ["rootLogger.level=INFO", "rootLogger.appenderRef.server.ref=server"]
    for number, name in enumerate(_FILES):
        lines += [
            f"appender.a{number}.type=RollingFile",
            f"appender.a{number}.name={name}",
            f"appender.a{number}.fileName={folder}/{name}.log",
            f"appender.a{number}.filePattern={folder}/{name}.log.%d{{yyyy-MM-dd-HH}}",
            f"appender.a{number}.layout.type=PatternLayout",
            f"appender.a{number}.layout.pattern={_PATTERN}",
            f"appender.a{number}.policies.type=TimeBasedTriggeringPolicy",
        ]
    for number, (logger, (level, file)) in enumerate(loggers.items()):
        lines += [f"logger.l{number}.name={logger}", f"logger.l{number}.level={level}"]
        if file:
            lines += [f"logger.l{number}.additivity=false", f"logger.l{number}.appenderRef.own.ref={file}"]
    return "\n".join(lines) + "\n"
