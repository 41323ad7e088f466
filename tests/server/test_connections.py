"""Sockets of the HTTP doors; that half a request is not waited for is tried with the MCP door."""

import socket

import pytest

from semcache.errors import InvalidSettings
from semcache.server.connections import listening_socket


def test_what_a_door_sends_does_not_wait_for_an_acknowledgment() -> None:
    with listening_socket("127.0.0.1", 0) as door:
        place = ("127.0.0.1", door.getsockname()[1])
        with socket.create_connection(place, 30):
            accepted, _ = door.accept()
            with accepted:
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_place_that_is_taken_or_not_here_is_told() -> None:
    with listening_socket("127.0.0.1", 0) as door, pytest.raises(InvalidSettings, match="is free"):
        listening_socket("127.0.0.1", door.getsockname()[1])
    with pytest.raises(InvalidSettings, match=r"at no\.such\.host\.invalid:80"):
        listening_socket("no.such.host.invalid", 80)
