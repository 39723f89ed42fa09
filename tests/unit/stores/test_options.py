"""What is known of a store: options before the environment, that before a profile; and nothing of it is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from cklog.engine.clusters import named_spark
from cklog.errors import UsageError
from cklog.model.options import Options
from cklog.stores.options import KEYS, Settings, parse_store, settings_of
from cklog.stores.store import Store, handed_over, store_of
from tests.conftest import SAMPLES
from tests.program import cklog

NOWHERE = {"AWS_CONFIG_FILE": "/nowhere", "AWS_SHARED_CREDENTIALS_FILE": "/nowhere"}


def values(uri: str, given: dict[str, str], environment: dict[str, str]) -> dict[str, str]:
    return dict(settings_of(uri, given, {**NOWHERE, **environment}).values)


def test_an_option_goes_before_the_environment_and_the_uri_before_both() -> None:
    told = {"AWS_REGION": "environment", "AWS_ENDPOINT_URL": "http://e:1"}
    assert values("s3://b", {}, told) == {"region": "environment", "endpoint": "http://e:1"}
    assert values("s3://b", {"region": "option"}, told)["region"] == "option"
    assert values("s3://b?region=uri", {"region": "option"}, told)["region"] == "uri"


def test_credentials_of_two_places_are_not_mixed() -> None:
    """A key of the command line with the session token of the environment would be refused by the store."""
    told = {"AWS_ACCESS_KEY_ID": "e", "AWS_SECRET_ACCESS_KEY": "e", "AWS_SESSION_TOKEN": "e"}
    assert values("s3://b", {"access_key": "o", "secret_key": "o"}, told) == {"access_key": "o", "secret_key": "o"}
    assert values("s3://b", {"anonymous": "true"}, told) == {"anonymous": "true"}


def test_a_profile_has_keys_and_a_region(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("[profile prod]\nregion = eu-north-1\n[default]\nregion = x\n")
    (tmp_path / "credentials").write_text("[prod]\naws_access_key_id = A\naws_secret_access_key = S\n")
    told = {"AWS_CONFIG_FILE": str(tmp_path / "config"), "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials")}
    found = settings_of("s3://b", {"profile": "prod"}, told).values
    assert found == {"profile": "prod", "region": "eu-north-1", "access_key": "A", "secret_key": "S"}
    assert settings_of("s3://b", {}, told).values == {"region": "x"}
    with pytest.raises(UsageError, match="profile test"):
        settings_of("s3://b", {"profile": "test"}, told)


@pytest.mark.parametrize("uri", ["s3://b/x", "gs://b/x", "abfss://c@a.dfs.core.windows.net/x", "hdfs://n/x"])
def test_an_option_of_another_kind_of_store_is_wrong_usage_that_names_those_there_are(uri: str) -> None:
    kind = uri.partition("://")[0]
    other = next(key for keys in KEYS.values() for key in keys if key not in KEYS[kind])
    with pytest.raises(UsageError) as raised:
        store_of(((other, "x"),), (uri,))
    assert all(key in raised.value.hint for key in KEYS[kind])


@pytest.mark.parametrize(
    "wrong", ["endpiont=x", "anonymous=maybe", "timeout=-1", "timeout=soon", "scheme=ftp", "=x", "x"]
)
def test_a_wrong_option_is_wrong_usage_and_its_value_is_not_repeated(wrong: str) -> None:
    ended = cklog("recovery-line", "s3://b/x", "--store", wrong, "--store", "secret_key=hunter2")
    assert ended.code == 2
    assert "hunter2" not in ended.out + ended.err
    assert ended.err.startswith("cklog: --store")


def test_nothing_that_is_printed_of_options_holds_a_value() -> None:
    secret = (("access_key", "AKIA9"), ("secret_key", "hunter2"), ("endpoint", "http://h"))
    shown = repr([Options(store=secret), Store(secret), Settings("s3", dict(secret))])
    assert "hunter2" not in shown
    assert "AKIA9" not in shown
    assert list(Options(store=secret).chosen_by()) == [("--store", "endpoint=http://h")]


def test_local_paths_have_no_store_and_hand_nothing_over() -> None:
    assert store_of((), ("/a", "b", "file:///c")) == ""
    assert handed_over(["/a", "file:///b"]) == {}


def test_options_are_checked_once_for_all_kinds() -> None:
    assert parse_store([("region", "x"), ("account", "y")]) == (("region", "x"), ("account", "y"))


@pytest.mark.parametrize(
    "place",
    [
        "s3://me:hunter2 b@b/x",
        "s3://me:a hunter2@b/x",
        's3://me:a"hunter2@b/x',
        "s3://me:a?hunter2@b/x",
        "s3://b/x?access_key=k&secret_key=a hunter2",
        's3://b/x?access_key=k&secret_key="hunter2',
        "s3://b/x?access_key=k&secret_key=a\nhunter2&region=x",
    ],
)
def test_a_secret_whose_end_nobody_sees_is_refused_and_not_printed(place: str) -> None:
    for words in (["recovery-line", place], ["recovery-line", SAMPLES / "domino-cycle", "--kafka", place]):
        ended = cklog(*words)
        assert (ended.code, ended.out) == (2, "")
        assert len(ended.err.splitlines()) == 2
        assert "hunter2" not in ended.err


@pytest.mark.parametrize("remote", ["sc://h:15002/;token=a hunter2", 'sc://h:15002/;token="hunter2'])
def test_neither_is_that_of_a_spark_server(remote: str) -> None:
    with pytest.raises(UsageError, match="--remote: secrets in a URI have no spaces and no quotes") as refused:
        named_spark("", remote, {}, {})
    assert "hunter2" not in str(refused.value)


def test_a_path_with_a_space_and_an_at_sign_is_no_secret() -> None:
    assert settings_of("s3://b/my runs/a@b?region=x", {}, {}).get("region") == "x"
