"""Chunks that Bouncy Castle has encrypted, the library of Aiven's plugin: `python -m tests.source.encrypted_chunks` records them (Java 17, Maven)."""

import base64
import json
import subprocess
from pathlib import Path

from tests.live_brokers.jars import fetched_jars

RECORDED = Path(__file__).parents[1] / "data" / "encrypted-chunks"
KEY = RECORDED / "key1.pem"
BOUNCY_CASTLE = ("org.bouncycastle", "bcprov-jdk18on", "1.83")
"""The release in the plugin's build.gradle."""
TEXTS = ("a chunk", "", "é" * 500)


def record() -> None:
    """Write a private key in PEM, what a manifest says of the encryption, and chunks with what they were."""
    jars = fetched_jars("bouncy-castle", [BOUNCY_CASTLE])
    program = Path(__file__).with_name("EncryptedChunks.java")
    command = ["java", "-cp", f"{jars}/*", str(program), *TEXTS]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    named = dict(line.split(" ", 1) for line in lines if not line.startswith("chunk "))
    rows = [line.split(" ", 3)[1:] for line in lines if line.startswith("chunk ")]
    body = "\n".join(named["private"][at : at + 64] for at in range(0, len(named["private"]), 64))
    chunks = [
        {"text": text, "chunk": base64.b64encode(base64.b64decode(iv) + base64.b64decode(content)).decode()}
        for iv, content, text in rows
    ]
    RECORDED.mkdir(exist_ok=True)
    KEY.write_text(f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n")
    found = {"encryption": {"dataKey": named["dataKey"], "aad": named["aad"]}, "chunks": chunks}
    (RECORDED / "chunks.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    record()
