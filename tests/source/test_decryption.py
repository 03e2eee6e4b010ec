"""Chunks that Bouncy Castle, the library of Aiven's plugin, has encrypted are decrypted; nothing else is."""

import base64
import json

import msgspec
import pytest

from kaudit.formats.errors import WireError
from kaudit.formats.sidefiles.segment_manifest import Encryption
from kaudit.source.decryption import DataKey
from tests.source.encrypted_chunks import BOUNCY_CASTLE, KEY, RECORDED, TEXTS

FOUND = json.loads((RECORDED / "chunks.json").read_text())
CHUNKS = [base64.b64decode(row["chunk"]) for row in FOUND["chunks"]]


def encryption(**other):
    key_id, data_key = FOUND["encryption"]["dataKey"].split(":")
    whole = Encryption(key_id, base64.b64decode(data_key), base64.b64decode(FOUND["encryption"]["aad"]))
    return msgspec.structs.replace(whole, **other)


def test_what_was_encrypted_is_found():
    key = DataKey(encryption(), [str(KEY)])
    assert [key.decrypted(chunk).decode() for chunk in CHUNKS] == list(TEXTS)
    assert BOUNCY_CASTLE[2] == "1.83"


@pytest.mark.parametrize(
    "chunk",
    [b"", CHUNKS[0][:-1], CHUNKS[0][:27], CHUNKS[0] + b"\0", bytes([CHUNKS[0][0] ^ 1]) + CHUNKS[0][1:], bytes(100)],
)
def test_nothing_else_is_authentic(chunk):
    with pytest.raises(WireError, match="AES-GCM does not authenticate it"):
        DataKey(encryption(), [str(KEY)]).decrypted(chunk)
    with pytest.raises(WireError, match="AES-GCM does not authenticate it"):
        DataKey(encryption(aad=b"other"), [str(KEY)]).decrypted(CHUNKS[0])


@pytest.mark.parametrize("data_key", [b"", bytes(256), b"\xff" * 256, b"\1" * 256, bytes(255), bytes(257)])
def test_a_data_key_that_is_not_encrypted_with_the_key(data_key):
    with pytest.raises(OSError, match="whose private key is not in") as caught:
        DataKey(encryption(data_key=data_key), [str(KEY)])
    assert caught.value.strerror == f"encrypted with key key1 (AES-GCM), whose private key is not in {KEY}"
