"""Decryption of segments that Aiven's plugin has encrypted: with a data key each (AES-256-GCM), which a public RSA key of its key ring encrypts.

A chunk is an initialization vector, the ciphertext and its tag. Source: the plugin's README ("Encryption") and its RsaEncryptionProvider,
AesEncryptionProvider and EncryptionChunkEnumeration (github.com/Aiven-Open/tiered-storage-for-apache-kafka).
"""

import errno
import os
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha3_512
from typing import Final

from cryptography.exceptions import InvalidTag, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from kaudit.formats.errors import Reason, WireError
from kaudit.formats.sidefiles.segment_manifest import ENCRYPTION_BYTES, Encryption
from kaudit.source.bytes import open_regular

_IV_BYTES: Final = 12
_MOST_KEY_BYTES: Final = 1 << 16
_AES_KEY_BYTES: Final = (16, 24, 32)
_HASH_BYTES: Final = sha3_512().digest_size


@lru_cache
def private_key(file: str) -> RSAPrivateKey:
    """Read a private key in PEM. Raises OSError: it cannot be read, or is none; the text does not name the file."""
    with os.fdopen(open_regular(file), "rb") as source:
        data = source.read(_MOST_KEY_BYTES)
    try:
        found = load_pem_private_key(data, None)
    except TypeError:
        raise OSError(errno.EINVAL, "it is protected by a password: write it without one", file) from None
    except (ValueError, UnsupportedAlgorithm):
        found = None
    if not isinstance(found, RSAPrivateKey):
        raise OSError(errno.EINVAL, "it holds no private RSA key in PEM", file)
    return found


class DataKey:
    """The key of one segment."""

    def __init__(self, encryption: Encryption, key_files: Sequence[str]) -> None:
        """Decrypt it. Raises OSError: a key file cannot be read, or none of them is the key's."""
        for file in key_files:
            data_key = _unwrapped(encryption.data_key, private_key(file))
            if data_key is not None and len(data_key) in _AES_KEY_BYTES:
                self._cipher, self._aad = AESGCM(data_key), encryption.aad
                return
        refused = (
            f"encrypted with key {encryption.key_id} (AES-GCM), whose private key is not in {', '.join(key_files)}"
        )
        raise OSError(errno.EACCES, refused)

    def decrypted(self, data: bytes) -> bytes:
        """Return what was encrypted as these bytes. Raises WireError where they are not what the plugin wrote."""
        try:
            if len(data) >= ENCRYPTION_BYTES:
                return self._cipher.decrypt(data[:_IV_BYTES], data[_IV_BYTES:], self._aad)
        except InvalidTag:
            pass
        raise WireError(0, Reason.CRC, "AES-GCM does not authenticate it: its bytes are not those that were encrypted")


def _unwrapped(data: bytes, key: RSAPrivateKey) -> bytes | None:
    """Return what was encrypted with the public key and OAEPWithSHA3-512AndMGF1Padding (RFC 8017, 7.1.2); None with another key.

    cryptography has no OAEP with SHA-3. Both hashes are SHA3-512, as Bouncy Castle has it; nobody measures the time that this takes.
    """
    numbers = key.private_numbers()
    modulus, size = numbers.public_numbers.n, key.key_size + 7 >> 3
    number = int.from_bytes(data)
    if len(data) != size or number >= modulus or size < 2 * _HASH_BYTES + 2:
        return None
    by_q = pow(number, numbers.dmq1, numbers.q)  # by the Chinese remainder theorem, as all do: a fourth of the time
    by_p = pow(number, numbers.dmp1, numbers.p) - by_q
    padded = (by_q + numbers.iqmp * by_p % numbers.p * numbers.q).to_bytes(size)
    masked_seed, masked = padded[1 : 1 + _HASH_BYTES], padded[1 + _HASH_BYTES :]
    block = _masked(masked, _masked(masked_seed, masked))
    head, _, content = block[_HASH_BYTES:].partition(b"\1")
    return None if padded[0] or any(head) or block[:_HASH_BYTES] != sha3_512().digest() else content


def _masked(data: bytes, seed: bytes) -> bytes:
    """Return the bytes, each exclusive or that of the mask that MGF1 makes of a seed."""
    blocks = range(-(-len(data) // _HASH_BYTES))
    mask = b"".join(sha3_512(seed + number.to_bytes(4)).digest() for number in blocks)
    return bytes(a ^ b for a, b in zip(data, mask, strict=False))
