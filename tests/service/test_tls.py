"""Real handshakes on loopback, with the loop of the standard library and with the one that the broker uses."""

from __future__ import annotations

import asyncio
import ssl

import pytest
import trustme
import uvloop

from tamis.service.errors import SettingsError, UnauthenticatedError
from tamis.service.principals import Authenticator
from tamis.service.settings import Role, Settings, Tls
from tamis.service.tls import TlsDoor, reload_doors
from tamis.service.tokens import Tokens

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture(scope="module")
def authorities():
    return trustme.CA(), trustme.CA()


class Files:
    """Certificates in a folder, where an operator would replace them."""

    def __init__(self, folder, authority: trustme.CA) -> None:
        self.folder = folder
        self.certificate, self.key, self.client_ca = (str(folder / name) for name in ("a.pem", "a.key", "ca.pem"))
        self.serve(authority)

    def serve(self, authority: trustme.CA) -> None:
        issued = authority.issue_cert("localhost", "127.0.0.1")
        issued.private_key_pem.write_to_path(self.key)
        for number, part in enumerate(issued.cert_chain_pems):
            part.write_to_path(self.certificate, append=number > 0)

    def trust(self, authority: trustme.CA) -> None:
        authority.cert_pem.write_to_path(self.client_ca)

    def tls(self, clients: str | None = None) -> Tls:
        client_ca = None if clients is None else self.client_ca
        return Tls(certificate=self.certificate, key=self.key, client_ca=client_ca, clients=clients or "optional")


@pytest.fixture
def files(tmp_path, authorities):
    files = Files(tmp_path, authorities[0])
    files.trust(authorities[0])
    return files


def client(authority: trustme.CA, shows: trustme.CA | None = None, name: str = "ann.example") -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    if shows is not None:
        shows.issue_cert(name).configure_cert(context)
    return context


class Door:
    """A server that says to each line what it knows of the certificate of the other end."""

    def __init__(self, tls: Tls) -> None:
        self.door = TlsDoor(tls)

    async def __aenter__(self) -> Door:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.door.context)
        self._port = self._server.sockets[0].getsockname()[1]
        self._writers: list[asyncio.StreamWriter] = []
        return self

    async def __aexit__(self, *_: object) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        while await reader.readline():
            certificate = writer.get_extra_info("peercert") or {}
            names = [name for _, name in certificate.get("subjectAltName", ())]
            writer.write(f"{','.join(names) or 'nobody'}\n".encode())

    async def connect(self, context: ssl.SSLContext, name: str = "localhost") -> Connection:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, ssl=context, server_hostname=name)
        self._writers.append(writer)
        return Connection(reader, writer)

    async def answer(self, context: ssl.SSLContext, name: str = "localhost") -> str:
        return await (await self.connect(context, name)).ask()


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def ask(self) -> str:
        """Return what the other end says; in TLS 1.3 a client learns only now that its certificate was refused."""
        self.writer.write(b"?\n")
        line = await self.reader.readline()
        if not line:
            raise ConnectionResetError("closed without an answer")
        return line.decode().strip()

    @property
    def serial(self) -> str:
        return self.writer.get_extra_info("peercert")["serialNumber"]


@pytest.fixture(params=sorted(LOOPS))
def run(request):
    def runs(coroutine):
        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            return runner.run(coroutine)

    return runs


def test_a_client_that_trusts_the_authority_talks_with_the_broker(run, files, authorities):
    async def talk():
        async with Door(files.tls()) as door:
            assert await door.answer(client(authorities[0])) == "nobody"
            assert await door.answer(client(authorities[0]), name="127.0.0.1") == "nobody", "without a server name, too"
            with pytest.raises(ssl.SSLCertVerificationError):
                await door.answer(client(authorities[1]))

    run(talk())


def test_old_protocols_are_refused(run, files, authorities):
    async def talk(version: ssl.TLSVersion, tls: Tls) -> str:
        context = client(authorities[0])
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = version
        async with Door(tls) as door:
            return (await door.connect(context)).writer.get_extra_info("ssl_object").version()

    assert run(talk(ssl.TLSVersion.TLSv1_2, files.tls())) == "TLSv1.2"
    assert run(talk(ssl.TLSVersion.TLSv1_3, files.tls())) == "TLSv1.3"
    with pytest.warns(DeprecationWarning, match="TLSv1_1"), pytest.raises((ssl.SSLError, ConnectionError)):
        run(talk(ssl.TLSVersion.TLSv1_1, files.tls()))
    with pytest.raises((ssl.SSLError, ConnectionError)):
        run(talk(ssl.TLSVersion.TLSv1_2, files.tls("optional")))


def test_a_new_certificate_counts_for_new_connections_and_open_ones_go_on(run, files, authorities):
    async def talk():
        async with Door(files.tls()) as door:
            before = await door.connect(client(authorities[0]))
            assert await before.ask() == "nobody"
            files.serve(authorities[1])
            same = await door.connect(client(authorities[0]))
            assert same.serial == before.serial, "nothing changes before the reload"
            reload_doors([(door.door, files.tls())])
            after = await door.connect(client(authorities[1]))
            assert await after.ask() == "nobody" and after.serial != before.serial
            without_name = await door.connect(client(authorities[1]), name="127.0.0.1")
            assert without_name.serial == after.serial
            with pytest.raises(ssl.SSLCertVerificationError):
                await door.answer(client(authorities[0]))
            assert await before.ask() == "nobody"
            assert await same.ask() == "nobody"

    run(talk())


def test_a_certificate_that_cannot_be_used_leaves_everything_as_it_was(run, files, authorities):
    async def talk():
        async with Door(files.tls()) as door:
            before = await door.connect(client(authorities[0]))
            for path, content in ((files.certificate, "nonsense"), (files.certificate, ""), (files.key, "nonsense")):
                (files.folder / path).write_text(content)
                with pytest.raises(SettingsError, match="cannot be used"):
                    reload_doors([(door.door, files.tls())])
            authorities[0].issue_cert("localhost").private_key_pem.write_to_path(files.key)
            with pytest.raises(SettingsError, match="cannot be used"):
                reload_doors([(door.door, files.tls())])
            (files.folder / files.certificate).unlink()
            with pytest.raises(SettingsError, match="No such file"):
                reload_doors([(door.door, files.tls())])
            after = await door.connect(client(authorities[0]))
            assert after.serial == before.serial
            assert await after.ask() == "nobody"

    run(talk())


def test_certificates_of_several_doors_change_together_or_not_at_all(run, tmp_path, authorities):
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    first, second = (Files(folder, authorities[0]) for folder in folders)

    async def talk():
        async with Door(first.tls()) as one, Door(second.tls()) as two:
            before = await one.connect(client(authorities[0]))
            first.serve(authorities[1])
            (folders[1] / "a.pem").write_text("nonsense")
            with pytest.raises(SettingsError, match="cannot be used"):
                reload_doors([(one.door, first.tls()), (two.door, second.tls())])
            assert (await one.connect(client(authorities[0]))).serial == before.serial
            second.serve(authorities[1])
            reload_doors([(one.door, first.tls()), (two.door, second.tls())])
            for door in (one, two):
                assert await door.answer(client(authorities[1])) == "nobody"

    run(talk())


def test_a_client_is_known_by_a_certificate_of_the_authority_and_by_no_other(run, files, authorities):
    async def talk():
        ours, other = authorities
        async with Door(files.tls("optional")) as door:
            assert await door.answer(client(ours, shows=ours)) == "ann.example"
            assert await door.answer(client(ours)) == "nobody"
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await door.answer(client(ours, shows=other))
        async with Door(files.tls("required")) as door:
            assert await door.answer(client(ours, shows=ours, name="bob.example")) == "bob.example"
            for context in (client(ours), client(ours, shows=other)):
                with pytest.raises((ssl.SSLError, ConnectionError)):
                    await door.answer(context)

    run(talk())


@pytest.mark.parametrize("clients", ["optional", "required"])
def test_an_authority_that_was_taken_away_lets_nobody_in_any_more(run, files, authorities, clients):
    async def talk():
        ours, other = authorities
        leaving, coming = client(ours, shows=ours), client(ours, shows=other)
        async with Door(files.tls(clients)) as door:
            before = await door.connect(leaving)
            assert await before.ask() == "ann.example"
            files.trust(other)
            reload_doors([(door.door, files.tls(clients))])
            assert await door.answer(coming) == "ann.example"
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await door.answer(leaving)
            assert await before.ask() == "ann.example", "an open connection goes on"

    run(talk())


def test_no_session_is_resumed(files, authorities):
    """With plain sockets, because asyncio offers no sessions."""

    async def serve(clients: str | None, version: ssl.TLSVersion) -> list[bool]:
        context = client(authorities[0], shows=authorities[0])
        context.maximum_version = version
        async with Door(files.tls(clients)) as door:
            return await asyncio.to_thread(reused, context, door._port)

    def reused(context: ssl.SSLContext, port: int) -> list[bool]:
        import socket

        session, answers = None, []
        for _ in range(3):
            with (
                socket.create_connection(("127.0.0.1", port)) as plain,
                context.wrap_socket(plain, server_hostname="localhost", session=session) as secure,
            ):
                secure.sendall(b"?\n")
                assert secure.recv(100)
                session = secure.session
                answers.append(bool(secure.session_reused))
        return answers

    assert asyncio.run(serve("required", ssl.TLSVersion.TLSv1_3)) == [False] * 3
    assert asyncio.run(serve(None, ssl.TLSVersion.TLSv1_3)) == [False] * 3


def test_whether_clients_are_asked_does_not_change_by_a_reload(files):
    door = TlsDoor(files.tls())
    for clients in ("optional", "required"):
        with pytest.raises(SettingsError, match="changes at a start only"):
            reload_doors([(door, files.tls(clients))])
    with pytest.raises(SettingsError, match=r"client_ca .* cannot be used"):
        TlsDoor(Tls(certificate=files.certificate, key=files.key, client_ca=files.key))


def test_what_a_handshake_says_of_a_client_is_what_the_authenticator_reads(run, files, authorities):
    settings = Settings(roles={"shop": Role()}, principals={"ann.example": ("shop",)})
    authenticator = Authenticator(settings, Tokens(":memory:"))

    async def talk(context: ssl.SSLContext) -> object:
        peers = []

        def handle(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            peers.append(writer.get_extra_info("peercert"))
            writer.write(b"x\n")

        server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=TlsDoor(files.tls("optional")).context)
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
        await reader.readline()
        writer.transport.abort()
        server.close()
        return peers[0]

    shown = run(talk(client(authorities[0], shows=authorities[0])))
    assert authenticator.principal(None, shown, "192.0.2.7").roles == ("shop",)
    nothing = run(talk(client(authorities[0])))
    with pytest.raises(UnauthenticatedError):
        authenticator.principal(None, nothing, "127.0.0.1")
