"""What encrypts a store: AES-256-GCM for texts, AES-SIV for names, HMAC-SHA-256 for keys."""

import hashlib
import hmac
import os
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from binascii import Error

from semcache.errors import InvalidSettings, MissingExtra
from semcache.process.imports import ensure_imported
from semcache.secrecy import remember

KEY_BYTES = 32
_NONCE = 12  # bytes; what NIST SP 800-38D asks for


class Cipher:
    """Encrypts under one key. Safe from several threads; shows its key nowhere.

    The key is used for nothing itself: each purpose has a key derived from it (HKDF-SHA-256), so
    that what one of them gives away says nothing to the others.
    """

    def __init__(self, key: str) -> None:
        """Derive what is needed from `key`: 32 bytes as base64, as `openssl rand -base64 32` gives.

        Raises:
            InvalidSettings: it is not that; the message does not show it.
            MissingExtra: the extra `encryption` is not installed.
        """
        secret = _decoded(key)
        remember(key, b64encode(secret).decode(), urlsafe_b64encode(secret).decode(), secret.hex())
        try:
            ensure_imported("cryptography.hazmat.primitives.ciphers.aead")
            ensure_imported("cryptography.hazmat.primitives.kdf.hkdf")
            from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 - an extra
            from cryptography.hazmat.primitives.ciphers import aead  # noqa: PLC0415 - an extra
            from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise MissingExtra(
                "encryption needs the package `cryptography`; "
                "pip install 'semcache-plans[encryption]'"
            ) from error

        def derived(purpose: str, size: int) -> bytes:
            info = f"semcache {purpose} 1".encode()
            return HKDF(hashes.SHA256(), size, salt=None, info=info).derive(secret)

        self._texts = aead.AESGCM(derived("texts", 32))
        self._names = aead.AESSIV(derived("names", 64))
        self._digests = derived("digests", 32)
        self.check = self.digest("check", "semcache")
        """Tells this key from others, and nothing of it."""

    def __repr__(self) -> str:
        return "Cipher()"

    def encrypt(self, text: str, place: str) -> str:
        """Return `text` encrypted for `place` alone: elsewhere it cannot be decrypted."""
        nonce = os.urandom(_NONCE)
        return _spelled(nonce + self._texts.encrypt(nonce, text.encode(), place.encode()))

    def decrypt(self, encrypted: str, place: str) -> str:
        """Return the text that was encrypted for `place`.

        Raises:
            ValueError: it is not what was written there, or another key wrote it.
        """
        raw = _unspelled(encrypted)
        try:
            return self._texts.decrypt(raw[:_NONCE], raw[_NONCE:], place.encode()).decode()
        except _invalid() as error:
            raise ValueError("it cannot be decrypted") from error

    def name(self, kind: str, text: str) -> str:
        """Return the one encrypted form of a name: equal names are equal, and that is all it tells.

        `named` gives it back.
        """
        # The first byte is for the empty name, which AES-SIV would not encrypt.
        return _spelled(self._names.encrypt(b"." + text.encode(), [kind.encode()]))

    def named(self, kind: str, encrypted: str) -> str:
        """Return the name that `name` encrypted.

        Raises:
            ValueError: it is not such a name, or another key wrote it.
        """
        try:
            return self._names.decrypt(_unspelled(encrypted), [kind.encode()])[1:].decode()
        except _invalid() as error:
            raise ValueError("a name cannot be decrypted") from error

    def digest(self, kind: str, text: str) -> str:
        """Return what finds `text` again and does not tell it, 64 hex digits."""
        return hmac.new(self._digests, f"{kind}\0{text}".encode(), hashlib.sha256).hexdigest()


def _decoded(key: str) -> bytes:
    text = key.strip().replace("-", "+").replace("_", "/")
    try:
        secret = b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (Error, ValueError):
        secret = b""
    if len(secret) != KEY_BYTES:
        raise InvalidSettings(
            f"encryption_key holds {len(secret)} bytes of base64; expected {KEY_BYTES}: "
            "`openssl rand -base64 32` makes one"
        )
    return secret


def _spelled(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")


def _unspelled(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _invalid() -> tuple[type[Exception], ...]:
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - an extra

    return InvalidTag, Error, ValueError
