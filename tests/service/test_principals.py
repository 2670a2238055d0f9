from __future__ import annotations

import sqlite3
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.service.errors import BadRequestError, NotFoundError, TooManyError, UnauthenticatedError
from tamis.service.messages import Principal
from tamis.service.principals import TICKET_S, TICKETS_EACH, Authenticator
from tamis.service.settings import Role, Settings
from tamis.service.tokens import Tokens, digest_of

ROLES = {"shop": Role(receive="region = 'EU'"), "boss": Role(admin=True)}
HERE, ELSEWHERE = "127.0.0.1", "192.0.2.7"


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def tokens(tmp_path):
    tokens = Tokens(tmp_path / "tokens.db")
    yield tokens
    tokens.close()


@pytest.fixture
def authenticator(tokens, clock):
    return Authenticator(
        Settings(roles=ROLES, principals={"ann.example": ("shop",), "root.example": ("admin",)}), tokens, clock
    )


def certificate(*alternatives: str, common: str | None = None, kind: str = "DNS"):
    subject = ((("organizationName", "x"),), (("commonName", common),)) if common else ((("organizationName", "x"),),)
    return {"subject": subject, "subjectAltName": tuple((kind, name) for name in alternatives)}


def test_without_roles_everybody_on_this_machine_is_admin_and_nobody_else(tokens):
    alone = Authenticator(Settings(), tokens)
    for remote in (HERE, "::1", "::ffff:127.0.0.1"):
        assert alone.principal("Bearer nonsense", None, remote) == Principal("local", (), is_admin=True)
    for remote in (ELSEWHERE, "::ffff:10.0.0.1", "", "unix", "2130706433"):
        with pytest.raises(UnauthenticatedError):
            alone.principal(None, None, remote)
    assert Authenticator(Settings(insecure=True), tokens).principal(None, None, ELSEWHERE).is_admin


def test_with_roles_nobody_is_known_by_being_here(authenticator):
    with pytest.raises(UnauthenticatedError, match="expected a header 'Authorization: Bearer TOKEN', or a client cert"):
        authenticator.principal(None, None, HERE)
    with pytest.raises(UnauthenticatedError):
        authenticator.principal(None, {}, HERE)


def test_a_token_stands_for_its_principal_from_anywhere(authenticator, tokens):
    secret, boss = tokens.create("ann", ("shop",)), tokens.create("bob", ("gone", "boss"))
    assert authenticator.principal(f"Bearer {secret}", None, ELSEWHERE) == Principal("ann", ("shop",))
    assert authenticator.principal(f"bEARER   {boss} ", None, HERE) == Principal("bob", ("gone", "boss"), is_admin=True)


@pytest.mark.parametrize(
    "header",
    [
        "", "Bearer", "Bearer ", "Basic YW5uOng=", "Bearer  ", "Bearer x y", "Bearer tamis_", "Bearer\tx", "Bearer \x00",
        "Bearer tamis_" + "é" * 43, "Bearer tamis_" + "\ud800" * 43, "Bearer " + "x" * 10_000, "tamis_" + "x" * 43,
        "Bearer tamis_" + "x" * 43, "Bearer tamis_" + "x" * 43 + "\n", "Bearer ' OR 1=1 --", "Bearer null", "Bearer,Bearer",
    ],
)  # fmt: skip
def test_what_is_no_token_is_refused_whatever_certificate_comes_with_it(authenticator, tokens, header):
    tokens.create("ann", ("boss",))
    with pytest.raises(UnauthenticatedError):
        authenticator.principal(header, certificate("root.example"), HERE)


@given(st.text(max_size=80))
def test_no_header_but_a_token_opens_anything(header):
    authenticator = Authenticator(Settings(roles=ROLES), SHARED)
    for text in (header, f"Bearer {header}"):
        with pytest.raises(UnauthenticatedError):
            authenticator.principal(text, None, HERE)


SHARED = Tokens(":memory:")
SHARED.create("ann", ("boss",))


def test_part_of_a_token_and_its_digest_open_nothing(authenticator, tokens):
    secret = tokens.create("ann", ("shop",))
    for wrong in (secret[:-1], secret + "A", secret.swapcase(), digest_of(secret), "tamis_" + digest_of(secret)[:43]):
        with pytest.raises(UnauthenticatedError, match="no such token"):
            authenticator.of_token(wrong)


def test_a_token_ends(authenticator, tokens, clock):
    secret = tokens.create("ann", ("shop",), ends=clock.now + 60)
    clock.now += 59.9
    assert authenticator.of_token(secret).name == "ann"
    clock.now += 0.1
    with pytest.raises(UnauthenticatedError, match="the token has expired"):
        authenticator.of_token(secret)


def test_tokens_made_and_revoked_by_another_process_count_at_once(tmp_path, clock):
    mine, others = Tokens(tmp_path / "tokens.db"), Tokens(tmp_path / "tokens.db")
    authenticator = Authenticator(Settings(roles=ROLES), mine, clock)
    secret = others.create("ann", ("shop",))
    assert authenticator.of_token(secret).name == "ann"
    others.revoke(digest_of(secret)[:12])
    with pytest.raises(UnauthenticatedError):
        authenticator.of_token(secret)
    again = mine.create("ann")
    assert [token.principal for token in others] == ["ann"]
    mine.revoke(next(iter(others)).name)
    with pytest.raises(UnauthenticatedError):
        authenticator.of_token(again)
    mine.close()
    others.close()


def test_a_file_of_tokens_holds_no_token_and_is_for_its_owner_only(tmp_path):
    path = tmp_path / "tokens.db"
    tokens = Tokens(path)
    secrets = [tokens.create("ann", ("shop",)) for _ in range(20)]
    tokens.close()
    content = b"".join(part.read_bytes() for part in tmp_path.iterdir())
    assert b"ann" in content
    assert not any(secret.encode() in content or secret[6:].encode() in content for secret in secrets)
    assert len(set(secrets)) == 20
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_first_start_makes_one_token_of_an_admin_and_no_other_does(tmp_path, clock):
    tokens = Tokens(tmp_path / "tokens.db")
    secret = tokens.create_first()
    assert Authenticator(Settings(roles=ROLES), tokens, clock).of_token(secret) == Principal(
        "admin", ("admin",), is_admin=True
    )
    tokens.revoke(digest_of(secret))
    tokens.close()
    again = Tokens(tmp_path / "tokens.db")
    assert again.create_first() is None and list(again) == []
    again.close()


def test_a_start_that_breaks_while_it_makes_the_first_token_makes_it_the_next_time(tmp_path):
    tokens = Tokens(tmp_path / "tokens.db")
    with sqlite3.connect(tmp_path / "tokens.db") as other:
        other.execute("CREATE TRIGGER broken BEFORE INSERT ON tokens BEGIN SELECT RAISE(ABORT, 'broken'); END")
    with pytest.raises(sqlite3.IntegrityError):
        tokens.create_first()
    with sqlite3.connect(tmp_path / "tokens.db") as other:
        other.execute("DROP TRIGGER broken")
    assert tokens.create_first() is not None
    tokens.close()


@pytest.mark.parametrize("name", ["", "a b", "a/b", "x" * 201, "a\n", "é", "-a", "tamis/x"])
def test_a_principal_has_a_plain_name(tokens, name):
    with pytest.raises(BadRequestError, match="is not the name of a principal"):
        tokens.create(name)


def test_only_one_token_is_revoked_at_a_time(tokens):
    tokens.create("ann")
    for name in ("", "0", "zzzzzzzz", next(iter(tokens)).digest[:5]):
        with pytest.raises(NotFoundError):
            tokens.revoke(name)


@pytest.mark.parametrize(
    ("shown", "name", "roles"),
    [
        (certificate("ann.example"), "ann.example", ("shop",)),
        (certificate("other.example", "ann.example"), "ann.example", ("shop",)),
        (certificate("bob.example", common="ann.example"), "bob.example", ()),
        (certificate(common="ann.example"), "ann.example", ("shop",)),
        (certificate("root.example"), "root.example", ("admin",)),
        (certificate("spiffe://x/y", kind="URI"), "spiffe://x/y", ()),
        (certificate("ann.example", kind="email"), "ann.example", ("shop",)),
        (certificate("10.0.0.1", kind="IP Address", common="ann.example"), "ann.example", ("shop",)),
    ],
)
def test_a_certificate_stands_for_its_name(authenticator, shown, name, roles):
    assert authenticator.principal(None, shown, ELSEWHERE) == Principal(name, roles, is_admin="admin" in roles)


@pytest.mark.parametrize(
    "shown", [certificate(), certificate(""), certificate("a\nb"), certificate("x" * 500), {"serialNumber": "1"}]
)
def test_a_certificate_without_a_usable_name_is_refused(authenticator, shown):
    with pytest.raises(UnauthenticatedError, match="certificate has no name"):
        authenticator.principal(None, shown, HERE)


def test_other_roles_count_after_a_reload(authenticator, tokens):
    secret = tokens.create("ann", ("shop",))
    authenticator.reload(Settings(roles={"shop": Role(admin=True)}))
    assert authenticator.of_token(secret).is_admin
    assert authenticator.principal(None, certificate("ann.example"), HERE).roles == ()


def test_a_reload_does_not_let_everybody_in(tokens):
    alone = Authenticator(Settings(), tokens)
    alone.reload(Settings(insecure=True))
    with pytest.raises(UnauthenticatedError):
        alone.principal(None, None, ELSEWHERE)


def test_a_ticket_is_good_once_and_for_a_minute(authenticator, clock):
    ann = Principal("ann", ("shop",))
    ticket, late = authenticator.ticket(ann), authenticator.ticket(ann)
    assert authenticator.of_ticket(ticket) == ann
    for wrong in (ticket, "", "x" * 10_000, "\ud800", "é"):
        with pytest.raises(UnauthenticatedError, match="no such ticket"):
            authenticator.of_ticket(wrong)
    clock.now += TICKET_S
    with pytest.raises(UnauthenticatedError):
        authenticator.of_ticket(late)


def test_tickets_are_limited_and_make_room_when_they_end(authenticator, clock):
    ann, bob = Principal("ann"), Principal("bob")
    for _ in range(TICKETS_EACH):
        authenticator.ticket(ann)
    with pytest.raises(TooManyError):
        authenticator.ticket(ann)
    authenticator.ticket(bob)
    clock.now += TICKET_S
    assert authenticator.of_ticket(authenticator.ticket(ann)) == ann


def test_a_ticket_is_no_token_and_a_token_no_ticket(authenticator, tokens):
    secret = tokens.create("ann", ("shop",))
    with pytest.raises(UnauthenticatedError):
        authenticator.of_ticket(secret)
    with pytest.raises(UnauthenticatedError):
        authenticator.principal(f"Bearer {authenticator.ticket(Principal('ann'))}", None, HERE)
