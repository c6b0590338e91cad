"""Standard Webhooks signatures."""

import base64
from datetime import UTC, datetime, timedelta

import pytest

from citeloop.channels.signing import SignatureError, signed_headers, verify

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
SECRET = "whsec_" + base64.b64encode(b"a" * 32).decode()
OLD = "whsec_" + base64.b64encode(b"b" * 32).decode()
BODY = b'{"type":"article.published"}'


def test_the_reference_vector_of_the_standard_is_met() -> None:
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    at = datetime.fromtimestamp(1614265330, UTC)
    headers = signed_headers(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, b'{"test": 2432232314}')
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_genuine_delivery_gives_its_id() -> None:
    assert verify([SECRET], signed_headers(SECRET, "msg_1", NOW, BODY), BODY, NOW) == "msg_1"


def test_header_names_may_come_in_any_case() -> None:
    headers = {name.title(): value for name, value in signed_headers(SECRET, "msg_1", NOW, BODY).items()}
    assert verify([SECRET], headers, BODY, NOW) == "msg_1"


def test_one_matching_signature_of_several_suffices() -> None:
    headers = signed_headers(SECRET, "msg_1", NOW, BODY)
    headers["webhook-signature"] = f"v1a,AAAA v1,!!! v1,AAAA {headers['webhook-signature']}"
    assert verify([SECRET], headers, BODY, NOW) == "msg_1"


def test_both_keys_are_good_while_they_are_rotated() -> None:
    assert verify([SECRET, OLD], signed_headers(OLD, "msg_1", NOW, BODY), BODY, NOW) == "msg_1"


@pytest.mark.parametrize("away", [timedelta(minutes=6), -timedelta(minutes=6)])
def test_a_delivery_more_than_five_minutes_away_is_refused(away: timedelta) -> None:
    with pytest.raises(SignatureError, match="5 minutes"):
        verify([SECRET], signed_headers(SECRET, "msg_1", NOW + away, BODY), BODY, NOW)


def test_a_changed_body_id_or_time_is_refused() -> None:
    headers = signed_headers(SECRET, "msg_1", NOW, BODY)
    for changed, body in (
        (headers, BODY + b" "),
        (headers | {"webhook-id": "msg_2"}, BODY),
        (headers | {"webhook-timestamp": str(int(NOW.timestamp()) + 1)}, BODY),
    ):
        with pytest.raises(SignatureError, match="no signature matches"):
            verify([SECRET], changed, body, NOW)


@pytest.mark.parametrize(
    "changed",
    [
        {"webhook-id": ""},
        {"webhook-timestamp": "soon"},
        {"webhook-timestamp": "²"},
        {"webhook-timestamp": "9" * 400},
        {"webhook-signature": "v1,é"},
        {"webhook-signature": ""},
        {"webhook-signature": "v1,AAAA v1,BBBB"},
    ],
)
def test_a_malformed_delivery_is_refused_and_never_breaks(changed: dict[str, str]) -> None:
    with pytest.raises(SignatureError):
        verify([SECRET], signed_headers(SECRET, "msg_1", NOW, BODY) | changed, BODY, NOW)


def test_a_secret_that_is_none_is_named_as_such() -> None:
    with pytest.raises(SignatureError, match="base64"):
        signed_headers("whsec_%%%", "msg_1", NOW, BODY)
