"""Secrets in commands, calls and statements: only where the command, or the place in a call, says that it is one."""

from __future__ import annotations

import pytest

from compact.redaction import MARK, Redactor


@pytest.mark.parametrize(
    "text",
    [
        "sqlcmd -S db -P § -Q x",
        "mosquitto_pub -u bob -P § -t x",
        "zip -r -P § x.zip dir",
        "docker login -u bob -p § host",
        "mysql -u root -p§ shop",
        "lftp -u bob,§ ftp.example.org",
        "curl --proxy-user bob:§ https://example.org",
        "echo § | sudo -S true",
        "echo 'root:§' | chpasswd",
        "gh secret set NAME --body §",
        "new PDO('mysql:host=db', 'app', '§')",
        "jwt.sign(payload, '§', options)",
        "hmac.new(b'§', body)",
        "source.setPassword('§')",
        "props.put(\"sasl.password\", '§');",
        "System.setProperty('javax.net.ssl.keyStorePassword', '§')",
        "config.set('db', 'password', '§')",
        "client.auth('§')",
        "let password = String::from('§');".replace("'", '"'),
        'password=SecretStr("§")',
        '<entry key="db.password">§</entry>',
        "Das Passwort für den Router ist §",
        "process.env.JWT_SECRET || '§'",
        "os.environ.get('SECRET_KEY', '§')",
        "ALTER ROLE app WITH LOGIN PASSWORD '§'",
        "IDENTIFIED WITH mysql_native_password BY '§'",
        "<wsse:Password Type='x'>§</wsse:Password>".replace("'", '"'),
        "%22password%22%3A%22§%22",
    ],
)
def test_the_argument_that_is_a_secret_goes_and_the_rest_stays(text: str) -> None:
    assert Redactor().text(text.replace("§", "walnut7pigeon")) == text.replace("§", MARK)


@pytest.mark.parametrize(
    "text",
    [
        "ssh -P hunter2x host",
        "cp -p hunter2x copy",
        "rsync -u bob,hunter2x dest",
        "mysql -u root -p hunter2x",
        "echo hunter2x | tee log",
        "vault.secret('hunter2x')",
        "getPassword('hunter2x')",
        "connect(a, b, c)",
        "form.setValue('password', '')",
        "errors.put('password', 'is too short')",
        "password={noop}",
        "with the password 'required'",
    ],
)
def test_the_same_flag_of_another_command_stays(text: str) -> None:
    assert Redactor().text(text) is text


def test_what_spring_writes_before_a_plain_password_is_no_placeholder() -> None:
    assert Redactor().text("user.password={noop}walnut7pigeon") == f"user.password={MARK}"
    assert Redactor().text("user.password={name}") == "user.password={name}"


def test_a_class_and_a_command_are_not_values() -> None:
    for text in ("private_key: Ed25519PrivateKey | None", "TOKEN=`gh auth token`", "$password = Read-Host"):
        assert Redactor().text(text) is text
