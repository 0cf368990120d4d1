"""Secrets by their form, by the environment and by a project's hook; and what is none."""

from __future__ import annotations

import json
import reprlib

import pytest

from pytest_crashlab.records.redaction import REDACTED, UNREDACTABLE, Redactor, redact

# Put together here, so that no scanner takes this file for a leak.
MIXED = "a1B2c3D4e5F6g7H8i9J0"
HEX = "0123456789abcdef"
KEYS = {
    "openai": "sk-" + MIXED * 2,
    "openai project": "sk-proj-" + MIXED + "_" + MIXED + "-" + MIXED,
    "anthropic": "sk-ant-api03-" + MIXED * 4 + "-AA",
    "openrouter": "sk-or-v1-" + HEX * 4,
    "langfuse": "pk-lf-" + "12ab34cd-12ab-34cd-56ef-1234567890ab",
    "stripe": "sk_live_" + MIXED,
    "stripe hook": "whsec_" + MIXED,
    "aws id": "AKIA" + "IOSFODNN7EXAMPLE",
    "aws temporary id": "ASIA" + "IOSFODNN7EXAMPLE",
    "google": "AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q",
    "google access": "ya29." + MIXED * 3,
    "google client": "GOCSPX-" + MIXED,
    "github": "ghp_" + MIXED + "abcdefghijklmnop",
    "github fine": "github_pat_" + MIXED + "_" + MIXED * 2,
    "gitlab": "glpat-" + MIXED,
    "slack bot": "xoxb-" + "123456789012-1234567890123-" + MIXED,
    "slack app": "xapp-" + "1-A0123456789-1234567890123-" + HEX,
    "hugging face": "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH",
    "groq": "gsk_" + MIXED * 2,
    "xai": "xai-" + MIXED * 2,
    "perplexity": "pplx-" + MIXED * 2,
    "nvidia": "nvapi-" + MIXED * 2,
    "replicate": "r8_" + MIXED * 2,
    "langsmith": "lsv2_pt_" + HEX * 2 + "_" + HEX[:10],
    "databricks": "dapi" + HEX * 2,
    "npm": "npm_" + MIXED + MIXED[:16],
    "pypi": "pypi-" + "AgEIcHlwaS5vcmc" + MIXED * 2,
    "sendgrid": "SG." + MIXED + "." + MIXED * 2,
    "jwt": "eyJ" + "hbGciOiJIUzI1NiJ9." + "eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0." + MIXED + "_-" + MIXED,
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_a_key_is_replaced_wherever_it_stands(key):
    for before, after in (
        ("", ""),
        ("key=", " rest"),
        ("('", "')"),
        ('{"k": "', '"}'),
        ("/", "?x=1"),
        ("\n", "\n"),
    ):
        text = redact(f"{before}{key}{after}")
        assert key not in text
        assert key[6:18] not in text
        assert REDACTED in text
        assert text.startswith(before)
    assert redact(f"no {key}, and no more") == f"no {REDACTED}, and no more"


@pytest.mark.parametrize("key", [key * 12 for key in (KEYS["openai"], KEYS["jwt"])], ids=["openai", "jwt"])
def test_the_end_that_repr_leaves_of_a_long_key_is_replaced_too(key):
    shortener = reprlib.Repr()
    shortener.maxstring = 240
    short = shortener.repr(key)
    assert "..." in short
    assert redact(f"key = {short}") == f"key = '{REDACTED}'"


NAMED = {
    "Authorization: Bearer abc.DEF-123_456~7+8/9==": "abc.DEF",
    "authorization: Basic dXNlcjpodW50ZXIy": "dXNlcj",
    "headers={'Authorization': 'Bearer tiny'}": "tiny",
    "'x-api-key': 'plainvalue'": "plainvalue",
    '{\\"api_key\\": \\"plainvalue\\"}': "plainvalue",
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY": "wJalr",
    '"password": "two words; and more"': "words",
    "password=hunter2&user=ann": "hunter2",
    "client_secret => s3cr3t": "s3cr3t",
    "ACCESS_TOKEN:abcdef": "abcdef",
    "assert password != 'hunter2'": "hunter2",
    "AccountName=a;AccountKey=Zm9vYmFy==;EndpointSuffix=core": "Zm9vYmFy",
    "Server=db;User Id=sa;Password=hunter2;": "hunter2",
    "postgresql://ann:hunter2@db.example/x": "hunter2",
    "redis://:hunter2@localhost:6379/0": "hunter2",
    "mongodb+srv://ann:hun%40ter2@cluster0.example/": "hun%40ter2",
    "https://hooks.slack.com/services/T0AAAAAAA/B0BBBBBBB/abcdEFGHijkl": "abcdEFGH",
}


@pytest.mark.parametrize("text", NAMED)
def test_a_value_is_replaced_for_what_stands_beside_it(text):
    cleaned = redact(text)
    assert NAMED[text] not in cleaned
    assert REDACTED in cleaned


@pytest.mark.parametrize("kind", ["RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", ""])
def test_a_private_key_is_replaced_as_a_block(kind):
    lines = [
        f"-----BEGIN {kind}PRIVATE KEY-----",
        "MIIEowIBAAKCAQEA1c7",
        "x+3=",
        f"-----END {kind}PRIVATE KEY-----",
    ]
    block = "\n".join(lines)
    assert redact(f"a\n{block}\nb") == f"a\n{REDACTED}\nb"
    assert redact(repr(f"a\n{block}\nb")) == repr(f"a\n{REDACTED}\nb")
    assert redact(block[:60]) == REDACTED  # cut before its end
    pgp = "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQOYBF\n-----END PGP PRIVATE KEY BLOCK-----"
    assert redact(pgp) == REDACTED


@pytest.mark.parametrize(
    "text",
    [
        "a task-oriented-assistant-for-everyone and sk-learn-pipeline-with-steps",
        "the token count is 12, the key is on the table, password reset",
        "tokens: 1234, max_tokens=50, key=lambda row: row.id, monkey: 3",
        "http://localhost:8080/path?q=a@b and ann@example.com",
        "test_refund[order-42]: expected 30, observed 20",
        "eyJ alone, AKIA alone, hf_ alone, basic english words",
        "def check(tokens: list[str], keyword: str) -> bool:",
    ],
)
def test_what_is_no_secret_stays(text):
    assert redact(text) == text


def test_environment_values_are_secrets_by_their_variables_name():
    redactor = Redactor()
    redactor.learn(
        {
            "SHOP_API_KEY": "correct horse",
            "DB_PASSWORD": 'q"uo\\te\nd ä',
            "MY_TOKEN": "short",
            "HOME": "/home/ann",
            "MONKEY": "chimpanzee",
            "MASTER_SECRET_V2": "correct horse battery",
        }
    )
    assert redactor("correct horse battery, correct horse") == f"{REDACTED}, {REDACTED}"
    assert redactor("short /home/ann chimpanzee") == "short /home/ann chimpanzee"
    password = 'q"uo\\te\nd ä'
    for written in (password, repr(password)[1:-1], json.dumps(password)[1:-1]):
        assert redactor(f"<{written}>") == f"<{REDACTED}>"
    redactor.learn({})  # a variable that was set for one test
    assert redactor("correct horse") == REDACTED


def test_hooks_follow_each_other_and_a_failing_one_keeps_the_text_out():
    assert (
        Redactor([lambda text: text.replace("Ann", "X"), lambda text: text + "!"])("Ann is here")
        == "X is here!"
    )
    assert Redactor([lambda text: text[1:], lambda _: None])("Ann") == UNREDACTABLE

    def fails(text):
        raise RuntimeError(text)

    assert Redactor([fails])("Ann") == UNREDACTABLE


def test_json_is_redacted_in_texts_in_keys_and_by_keys():
    redactor = Redactor()
    value = {
        "api_key": "plain",
        "Authorization": "whatever it is",
        "tokens": 12,
        "access_token": None,
        "note": ["see " + KEYS["github"], 3.5, True, {"slack_token": "x y"}],
        KEYS["openai"]: 1,
    }
    assert redactor.within(value) == {
        "api_key": REDACTED,
        "Authorization": REDACTED,
        "tokens": 12,
        "access_token": None,
        "note": [f"see {REDACTED}", 3.5, True, {"slack_token": REDACTED}],
        REDACTED: 1,
    }
