"""The files in git contain no secrets (ASVS 13.3). `make check` runs this test."""

import re
import subprocess
from pathlib import Path

import pytest
from detect_secrets.core.scan import scan_file
from detect_secrets.settings import transient_settings

ROOT = Path(__file__).parents[3]
# Those that know the form of a secret. Hashes and vectors are random by nature, so entropy is
# no sign here.
DETECTORS = (
    "ArtifactoryDetector", "AWSKeyDetector", "AzureStorageKeyDetector", "BasicAuthDetector",
    "CloudantDetector", "DiscordBotTokenDetector", "GitHubTokenDetector", "GitLabTokenDetector",
    "IbmCloudIamDetector", "JwtTokenDetector", "KeywordDetector", "MailchimpDetector",
    "NpmDetector", "OpenAIDetector", "PrivateKeyDetector", "PypiTokenDetector",
    "SendGridDetector", "SlackDetector", "SquareOAuthDetector", "StripeDetector",
    "TelegramBotTokenDetector", "TwilioKeyDetector",
)  # fmt: skip
OWN = re.compile(r"svc_(?:live|test|terminal)_[0-9a-f]{48}|whsec_[\w-]{43}\b")
HARMLESS = {
    ("appliance/tls/certificates.py", "BEGIN PRIVATE KEY"),  # contains expected values
    ("appliance/core/errors.py", "try again in {seconds} s. Nothing is lost."),  # of a sentence
    ("docs/reference/api.md", "whsec_3q2-7wEXAMPLEONLYxT0zJrYbVdK9mHnQ5uLcWsPf8A"),  # the same
    ("web/api/openapi.md", "whsec_3q2-7wEXAMPLEONLYxT0zJrYbVdK9mHnQ5uLcWsPf8A"),
    ("docs/partners/guide.md", "svc_test_" + "0123456789abcdef" * 3),
    ("tests/vectors/webhook_signature.json", "whsec_MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI"),
    ("tests/vectors/webhook_signature.json", "whsec_b2xkLXNlY3JldC1vbGQtc2VjcmV0LW9sZC1zZWNyZXQ"),
    ("tests/unit/test_settings.py", "secret"),  # in addresses that are refused
    ("tests/webhooks/spellings.py", "secret"),  # a receiver's address that is refused
}
HERE = "tests/promises/attacks/test_no_secrets.py"  # it names what is harmless
LOCKS = re.compile(r"requirements/.*\.txt|.*package-lock\.json")  # hashes and nothing else
MADE_UP = "KeywordDetector"  # finds the passwords of tests
PARTS = 4  # looked through one beside the other


def secrets_in(path, name):
    """Return (name, value) of each text in the file that looks like a secret."""
    asked = [each for each in DETECTORS if each != MADE_UP or not name.startswith("tests/")]
    with transient_settings({"plugins_used": [{"name": each} for each in asked]}):
        found = {(name, str(each.secret_value)) for each in scan_file(str(path))}
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        return found
    keys = {key for key in OWN.findall(text) if len(set(key)) > 16}  # not one sign repeated
    return found | {(name, key) for key in keys}


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize("part", range(PARTS))
def test_the_repository_contains_no_secrets(part):
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    kept = [name for name in listed.stdout.split("\0") if name and not LOCKS.fullmatch(name)]
    names = [name for name in kept if (ROOT / name).is_file() and name != HERE]

    found = set().union(*(secrets_in(ROOT / name, name) for name in names[part::PARTS]))

    assert len(names) > 500
    assert found - HARMLESS == set()


@pytest.mark.parametrize(
    "secret",
    [
        "AKIA" + "IOSFODNN7EXAMPLE",
        "-----BEGIN EC " + "PRIVATE KEY-----",
        "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5",
        "svc_live_" + "0123456789abcdef" * 3,
        "password = '" + "Kx93hfk2Lq0z'",
    ],
)
def test_the_check_finds_a_secret_left_in_a_file(tmp_path, secret):
    path = tmp_path / "notes.py"
    path.write_text(f"{secret}\n", "utf-8")

    assert secrets_in(path, "notes.py")
