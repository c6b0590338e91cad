import pytest

from citeloop.sealing import Seal, SealError, new_key

OWNER = ("tenant", "blog", "https://blog.example.com:443")


def test_what_was_sealed_is_opened_for_its_owner_and_nobody_else() -> None:
    seal = Seal(new_key())
    sealed = seal.close("pass word", OWNER)
    assert b"pass" not in sealed
    assert seal.open(sealed, OWNER) == "pass word"
    for other in (("other", *OWNER[1:]), (*OWNER[:2], "https://evil.example.com:443"), OWNER[:2]):
        with pytest.raises(SealError, match="belongs to another site or address"):
            seal.open(sealed, other)


def test_the_first_key_seals_and_all_of_them_open() -> None:
    old, new = new_key(), new_key()
    both = Seal(f" {new} , {old} ")
    assert both.open(Seal(old).close("s", OWNER), OWNER) == "s"
    assert Seal(new).open(both.close("s", OWNER), OWNER) == "s"
    with pytest.raises(SealError, match="sealed under another key") as wrong:
        Seal(old).open(both.close("secret words", OWNER), OWNER)
    assert "secret words" not in str(wrong.value)


def test_something_tampered_with_is_not_opened() -> None:
    seal = Seal(new_key())
    sealed = bytearray(seal.close("s", OWNER))
    sealed[-5] ^= 1
    with pytest.raises(SealError):
        seal.open(bytes(sealed), OWNER)


@pytest.mark.parametrize("keys", [None, "", " , "])
def test_a_missing_key_is_said_to_be_missing(keys: str | None) -> None:
    with pytest.raises(SealError, match=r"CITELOOP_SECRET_KEY is not set.*`citeloop sites new-key`"):
        Seal(keys)


def test_a_wrong_key_is_never_quoted() -> None:
    with pytest.raises(SealError, match="holds no Fernet key") as wrong:
        Seal("hunter2hunter2")
    assert "hunter2" not in str(wrong.value)


def test_the_same_secret_has_the_same_print_under_one_key_only() -> None:
    one, other = Seal(new_key()), Seal(new_key())
    assert one.print_of("s", OWNER) == one.print_of("s", OWNER)
    assert one.print_of("s", OWNER) != one.print_of("t", OWNER)
    assert one.print_of("s", OWNER) != other.print_of("s", OWNER)
