"""A second corpus: secrets of real products where they are found in real life, and what only looks like one.

It was written without a look at the rules. No secret stands in this file: marks are replaced when it is read.

    «!a36»   36 letters and digits that must not survive; without `!` they are part of the scene, and may
    «!k16»   upper case and digits
    «!h32»   hexadecimal      «!b44»   base64         «!u»     a uuid        «!d10»   digits
    «!p14»   a password with letters, digits and signs      «!q10»   one without signs      «!w4»   four words

A case in `ENCODED` is encoded as a whole: nothing of the encoded text must survive.
"""

from __future__ import annotations

import base64
import json
import random
import re
import string
from dataclasses import dataclass

from redaction import more_carriers

_MARK = re.compile(r"«(!?)([a-z])(\d*)»")
_WORDS = ("harbour", "lantern", "marble", "pigeon", "copper", "willow", "thunder", "pepper", "saddle", "velvet")
_SIGNS = "!#%*+-_?="


@dataclass(frozen=True, slots=True)
class Case:
    """A text, and what of it must not survive: nothing for a look-alike."""

    name: str
    text: str
    secrets: tuple[str, ...] = ()


def secret_cases(seed: int = 0) -> list[Case]:
    """Return every secret in its carrier, made anew from a seed."""
    cases = [
        _filled(name, text, random.Random(f"{seed}/{name}")) for name, text in _pairs(SECRETS + more_carriers.SECRETS)
    ]
    return cases + [_encoded(name, text, random.Random(f"{seed}/{name}")) for name, text in _pairs(ENCODED)]


def lookalike_cases(seed: int = 0) -> list[Case]:
    """Return every look-alike, made anew from a seed."""
    lines = [line for line in (LOOKALIKES + more_carriers.LOOKALIKES).splitlines() if line.strip()]
    lines += [context.replace("@", value) for context in CONTEXTS for value in IDENTIFIERS]
    blocks = [block.strip("\n") for block in (BLOCKS + "\n---\n" + more_carriers.BLOCKS).split("\n---\n")]
    texts = [*lines, *blocks]
    return [_filled(f"{n}: {text[:40]}", text, random.Random(f"{seed}/{n}")) for n, text in enumerate(texts)]


def _pairs(cases: str) -> list[tuple[str, str]]:
    """Return name and text of each case: a line `# name`, and the lines up to the next."""
    parts = re.split(r"^# (.+)$", cases.strip("\n"), flags=re.MULTILINE)[1:]
    return [(name, text.strip("\n")) for name, text in zip(parts[::2], parts[1::2], strict=True)]


def _filled(name: str, text: str, chance: random.Random) -> Case:
    secrets: list[str] = []

    def value(mark: re.Match[str]) -> str:
        made = _made(mark[2], int(mark[3] or 0), chance)
        if mark[1]:
            secrets.append(made)
        return made

    filled = _MARK.sub(value, text)
    return Case(name, filled.replace("␉", "\t"), tuple(secrets))


def _encoded(name: str, text: str, chance: random.Random) -> Case:
    """Return the case with what stands between ⟦ and ⟧ encoded: `b64`, or `json`, as a string in a string."""
    filled = _filled(name, text, chance)
    secrets = list(filled.secrets)

    def encode(found: re.Match[str]) -> str:
        if found[1] == "json":
            return json.dumps(found[2])
        made = base64.b64encode(found[2].encode()).decode()
        secrets[:] = [made]
        return made

    return Case(name, re.sub(r"⟦(\w+)\s(.*?)⟧", encode, filled.text, flags=re.DOTALL), tuple(secrets))


def _made(kind: str, size: int, chance: random.Random) -> str:
    letters = string.ascii_letters + string.digits
    match kind:
        case "a":
            return "".join(chance.choices(letters, k=size - 3)) + "x7Q"
        case "k":
            return "".join(chance.choices(string.ascii_uppercase + "234567", k=size))
        case "h":
            return "".join(chance.choices("0123456789abcdef", k=size))
        case "b":
            made = base64.b64encode(chance.randbytes(size * 3 // 4 + 3)).decode()[: size - 1]
            return made.replace("+", "k").replace("/", "w") + "="
        case "u":
            raw = "".join(chance.choices("0123456789abcdef", k=32))
            return "-".join((raw[:8], raw[8:12], "4" + raw[13:16], "a" + raw[17:20], raw[20:]))
        case "d":
            return chance.choice("123456789") + "".join(chance.choices(string.digits, k=size - 1))
        case "p":
            body = "".join(chance.choices(letters, k=size - 4))
            return (
                body[:3] + chance.choice(_SIGNS) + body[3:] + chance.choice(string.digits) + chance.choice("!#*") + "k"
            )
        case "q":
            return "".join(chance.choices(letters, k=size - 2)) + chance.choice("abcxyz") + chance.choice("23456789")
        case "w":
            return " ".join(chance.sample(_WORDS, size))
        case _:
            raise ValueError(f"unknown mark {kind!r}")


SECRETS = r"""
# aws access key in an env file
AWS_ACCESS_KEY_ID=AKIA«!k16»
AWS_DEFAULT_REGION=eu-central-1
# aws secret key in a credentials file
[default]
aws_access_key_id = ASIAEXAMPLEEXAMPLE12
aws_secret_access_key = «!a40»
# aws session token in a shell
export AWS_SESSION_TOKEN="IQoJb3JpZ2luX2VjE«!b200»"
# github classic token in a remote
origin  https://ghp_«!a36»@github.com/acme/site.git (fetch)
# github fine-grained token in a workflow
      - run: gh auth login --with-token <<< github_pat_«!a22»_«!a59»
# github app token in a log
remote: Invalid username or password for 'https://x-access-token:ghs_«!a36»@github.com/acme/site'
# gitlab token in a curl command
curl --header "PRIVATE-TOKEN: glpat-«!a20»" "https://gitlab.example.com/api/v4/projects"
# gitlab runner token in toml
[[runners]]
  token = "glrt-«!a20»"
# slack bot token in yaml
slack:
  bot_token: xoxb-«d12»-«d13»-«!a24»
# slack webhook in a shell
curl -X POST -d '{"text":"hi"}' https://hooks.slack.com/services/T«a9»/B«a9»/«!a24»
# discord webhook in python
WEBHOOK = "https://discord.com/api/webhooks/«d18»/«!a68»"
# discord bot token in javascript
client.login('MT«a22».G«a5».«!a38»');
# telegram bot token in a url
GET https://api.telegram.org/bot«d10»:AA«!a33»/getUpdates 200
# stripe live key in node
const stripe = require('stripe')('sk_live_«!a24»');
# stripe restricted key in json
{"mode": "live", "key": "rk_live_«!a24»"}
# stripe webhook secret in an env file
STRIPE_WEBHOOK_SECRET=whsec_«!a32»
# twilio auth token in python
client = Client("AC«h32»", auth_token="«!h32»")
# sendgrid key in a stack trace
sendgrid.exceptions.Unauthorized: 401 for key SG.«!a22».«!a43»
# mailgun key in a curl command
curl -s --user 'api:key-«!h32»' https://api.mailgun.net/v3/example.com/messages
# mailchimp key in php
$mailchimp = new MailChimp('«!h32»-us14');
# google api key in a url
https://maps.googleapis.com/maps/api/js?key=AIza«!a35»&callback=init
# google oauth secret in json
{"installed": {"client_id": "«d12»-abc.apps.googleusercontent.com", "client_secret": "GOCSPX-«!a28»"}}
# google refresh token in json
{"refresh_token": "1//0e«!a60»", "token_type": "Bearer"}
# google access token in a header
authorization: Bearer ya29.a0Af«!a60»
# gcp service account in json
{"type": "service_account", "private_key_id": "«h40»",
 "private_key": "-----BEGIN PRIVATE KEY-----\n«!b64»\n«!b64»\n-----END PRIVATE KEY-----\n"}
# azure storage connection string
DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=«!b88»;EndpointSuffix=core.windows.net
# azure sas url
https://acme.blob.core.windows.net/c/b.csv?sv=2022-11-02&se=2026-01-01&sr=b&sp=r&sig=«!a43»%3D
# azure client secret in terraform
provider "azurerm" {
  client_id     = "«u»"
  client_secret = "«!a8»~«!a31»"
}
# azure service bus
Endpoint=sb://acme.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=«!b44»
# azure devops pat, with no user name
curl -u :«!a52» https://dev.azure.com/acme/_apis/projects
# npm token in npmrc
//registry.example.com/:_authToken=npm_«!a36»
# legacy npm auth in npmrc
_auth = «!b40»
# pypi token in pypirc
[pypi]
username = __token__
password = pypi-AgEIcHlwaS5vcmc«!a80»
# docker config
{"auths": {"https://index.docker.io/v1/": {"auth": "«!b36»"}}}
# docker hub token on the command line
echo dckr_pat_«!a27» | docker login -u acme --password-stdin
# docker login with -p
docker login -u acme -p «!p14» registry.example.com
# heroku key in netrc
machine api.heroku.com
  login ops@example.com
  password «!u»
# digitalocean token in an env file
DIGITALOCEAN_ACCESS_TOKEN=dop_v1_«!h64»
# cloudflare token in a header
curl -H "Authorization: Bearer «!a40»" https://api.cloudflare.com/client/v4/zones
# datadog keys in yaml
api_key: «!h32»
app_key: «!h40»
# new relic key in yaml
license_key: NRAK-«!a27»
# sentry token in an env file
SENTRY_AUTH_TOKEN=sntrys_«!a60»
# grafana token in a curl command
curl -H "Authorization: Bearer glsa_«!a32»_«h8»" http://grafana:3000/api/org
# hugging face token in python
login(token="hf_«!a34»")
# openai key in a stack trace
openai.AuthenticationError: Error code: 401 - Incorrect API key provided: sk-proj-«!a48».
# anthropic key in an env file
ANTHROPIC_API_KEY=sk-ant-api03-«!a93»-AA
# groq key in javascript
const groq = new Groq({ apiKey: "gsk_«!a52»" });
# replicate token
export REPLICATE_API_TOKEN=r8_«!a37»
# perplexity key in a header
Authorization: Bearer pplx-«!a48»
# xai key in json
{"provider": "xai", "key": "xai-«!a80»"}
# pinecone key
pc = Pinecone(api_key="pcsk_«!a60»")
# databricks token in a cfg file
[DEFAULT]
host = https://acme.cloud.databricks.com
token = dapi«!h32»
# shopify token in a header
X-Shopify-Access-Token: shpat_«!h32»
# square token in an env file
SQUARE_ACCESS_TOKEN=EAAA«!a60»
# airtable token
curl "https://api.airtable.com/v0/app1/T" -H "Authorization: Bearer pat«!a14».«!h64»"
# notion token in js
const notion = new Client({ auth: "ntn_«!a46»" });
# linear key
LINEAR_API_KEY=lin_api_«!a40»
# jira token with basic auth
curl -u ops@example.com:ATATT3xFfGF0«!a60» https://acme.atlassian.net/rest/api/3/myself
# bitbucket app password in a remote
https://acme:ATBB«!a28»@bitbucket.org/acme/site.git
# figma token
X-Figma-Token: figd_«!a40»
# postman key
{"x-api-key": "PMAK-«!h24»-«!h34»"}
# netlify token
NETLIFY_AUTH_TOKEN=nfp_«!a36»
# fly token
FLY_API_TOKEN="FlyV1 fm2_«!b120»"
# supabase token
supabase login --token sbp_«!h40»
# planetscale token
pscale auth --service-token pscale_tkn_«!a43»
# vault token in a shell
export VAULT_TOKEN=hvs.«!a90»
# consul token in a header
X-Consul-Token: «!u»
# age key in a file
AGE-SECRET-KEY-1«!k58»
# wireguard configuration
[Interface]
PrivateKey = «!b44»
Address = 10.0.0.2/24
# wireguard preshared key
PresharedKey = «!b44»
# openssh private key
-----BEGIN OPENSSH PRIVATE KEY-----
«!b70»
«!b70»
-----END OPENSSH PRIVATE KEY-----
# pgp private key
-----BEGIN PGP PRIVATE KEY BLOCK-----

«!b64»
-----END PGP PRIVATE KEY BLOCK-----
# jwt in a log
2025-01-02 auth ok token=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI«a30».«!a43»
# otp secret in a url
otpauth://totp/Acme:ops@example.com?secret=JBSW«!k28»&issuer=Acme
# kubeconfig
users:
- name: admin
  user:
    client-key-data: «!b200»
    token: eyJhbGciOiJSUzI1NiJ9.«!a60».«!a80»
# kubernetes secret with data
apiVersion: v1
kind: Secret
metadata:
  name: db
type: Opaque
data:
  username: YWRtaW4=
  db-pass: «!b24»
# kubernetes secret with other names
apiVersion: v1
kind: Secret
metadata:
  name: smtp
stringData:
  smtp.conf: «!p16»
# kubernetes env of a pod
        env:
        - name: DB_PASSWORD
          value: "«!p14»"
# kubectl create secret
kubectl create secret generic db --from-literal=password='«!p14»'
# helm set
helm install app ./chart --set postgresql.auth.password=«!q16»
# yaml block scalar
database:
  password: |
    «!p16»
  host: db.internal
# yaml folded scalar
secret_key: >-
  «!a50»
debug: false
# yaml list of tokens
api_tokens:
  - «!a32»
  - «!a32»
# docker compose
services:
  db:
    environment:
      POSTGRES_PASSWORD: «!p12»
      - MYSQL_ROOT_PASSWORD=«!p12»
# dockerfile
ENV NODE_ENV=production DB_PASSWORD=«!q14»
ARG NPM_TOKEN=«!a36»
# ansible variables
ansible_become_pass: "«!p14»"
# terraform default
variable "db_password" {
  type      = string
  sensitive = true
  default   = "«!p14»"
}
# tfvars
db_password = "«!p14»"
# terraform state
{"type": "random_password", "attributes": {"length": 16, "result": "«!p16»"}}
# github actions env
env:
  DEPLOY_KEY: «!a40»
# shadow file
root:$6$«a16»$«!a86»:19700:0:99999:7:::
# shadow file, yescrypt
ops:$y$j9T$«a22»$«!a43»:19700:0:99999:7:::
# htpasswd, apr1
admin:$apr1$«a8»$«!a22»
# htpasswd, bcrypt
admin:$2y$10$«!a53»
# bcrypt hash in a dump
INSERT INTO users VALUES (1, 'ann', '$2b$12$«!a53»', '2025-01-02');
# argon2 hash in json
{"user": "ann", "hash": "$argon2id$v=19$m=65536,t=3,p=4$«a22»$«!a43»"}
# django hash
pbkdf2_sha256$600000$«a22»$«!b44»
# pgpass
db.internal:5432:orders:app:«!p14»
# pgpass with stars
*:*:*:postgres:«!q16»
# my.cnf
[client]
user=root
password="«!p14»"
# netrc on one line
machine ftp.example.com login ann password «!q14»
# postgres url
DATABASE_URL=postgresql://app:«!q16»@db.internal:5432/orders
# postgres url with odd characters
postgres://app:«!q6»%23«!q6»@db/orders?sslmode=require
# mongodb url
mongodb+srv://app:«!q16»@cluster0.abcde.mongodb.net/test
# redis url without a user
redis://:«!q20»@cache.internal:6379/0
# amqp url in a stack trace
pika.exceptions.ProbableAuthenticationError: amqp://guest:«!q12»@mq:5672/%2F
# jdbc url
jdbc:mysql://db:3306/shop?user=app&password=«!q14»&useSSL=false
# jdbc oracle
jdbc:oracle:thin:scott/«!q12»@//db:1521/ORCL
# odbc connection string
Driver={SQL Server};Server=db;Uid=sa;Pwd=«!p14»;
# ado connection string in web.config
<add name="Db" connectionString="Server=db;Database=shop;User Id=sa;Password=«!p12»;" />
# appsettings
{"Smtp": {"Host": "smtp.example.com", "UserName": "ops", "Password": "«!p14»"}}
# xml element
<credentials><username>ann</username><password>«!p14»</password></credentials>
# maven settings
<server><id>nexus</id><username>ci</username><password>{«!b44»}</password></server>
# ini file
[smtp]
user = ops
pass = «!p12»
# java properties
spring.datasource.password=«!p14»
spring.mail.password: «!p14»
# kafka jaas
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="app" password="«!p14»";
# php define
define('DB_PASSWORD', '«!p14»');
define('AUTH_KEY', '«!p40»');
# php array
'password' => '«!p14»',
# django settings
SECRET_KEY = 'django-insecure-«!p50»'
# rails secrets
production:
  secret_key_base: «!h128»
# laravel key
APP_KEY=base64:«!b44»
# python code
conn = psycopg.connect(host="db", user="app", password="«!p14»")
# go code
cfg := Config{User: "app", Password: "«!p14»"}
# c sharp code
var password = "«!p14»";
# rust code
let api_key = "«!a32»".to_string();
# ruby code
client = Client.new(user: 'app', password: '«!p14»')
# sql create user
CREATE USER app WITH ENCRYPTED PASSWORD '«!p14»';
# sql identified by
CREATE USER 'app'@'%' IDENTIFIED BY '«!p14»';
# sql server login
CREATE LOGIN app WITH PASSWORD = N'«!p14»';
# mysql on the command line
mysqldump -h db -u root -p«!q14» shop > shop.sql
# mysql with a long option
mysql --user=root --password=«!p14» shop
# psql with a variable
PGPASSWORD=«!p14» psql -h db -U app orders
# redis cli
redis-cli -h cache -a «!q20» ping
# sshpass
sshpass -p '«!p14»' ssh deploy@10.0.0.5
# openssl
openssl rsa -in key.pem -passin pass:«!q14» -out plain.pem
# gpg
gpg --batch --passphrase "«!w4»" -d file.gpg
# mosquitto
mosquitto_pub -h mq -u app -P «!p14» -t x -m y
# curl with user and password
curl -u 'admin:«!p14»' https://grafana.internal/api/health
# curl with a long option
curl --user admin:«!q14» https://nexus.internal/
# wget
wget --user=ann --password='«!p14»' https://files.example.com/a.zip
# basic auth header
Authorization: Basic «!b40»
# basic auth in a url
git clone https://ann:«!q16»@git.example.com/x.git
# ftp url
ftp://ann:«!q12»@files.example.com/pub
# smtp url
MAILER_DSN=smtp://ops:«!q14»@smtp.example.com:587
# api key header
-H 'X-Api-Key: «!a40»'
# cookie header
Cookie: theme=dark; sessionid=«!a32»; csrftoken=«!a32»
# set-cookie header
Set-Cookie: connect.sid=s%3A«!a32».«!a43»; Path=/; HttpOnly
# token in a query
GET /v1/items?access_token=«!a40»&page=2 HTTP/1.1
# api key in a query
https://api.weather.example/v2?q=Bremen&appid=«!h32»
# form body
grant_type=password&username=ann&password=«!q14»&client_secret=«!a32»
# windows cmd
set DB_PASSWORD=«!p14»
# powershell
$env:API_KEY = '«!a32»'
# powershell secure string
ConvertTo-SecureString "«!p14»" -AsPlainText -Force
# net use
net use Z: \\srv\share «!p14» /user:ACME\ann
# fish shell
set -x GITLAB_TOKEN «!a26»
# wpa supplicant
network={
  ssid="office"
  psk="«!p16»"
}
# ldap bind password
bindpw «!p14»
# ldapsearch
ldapsearch -x -D "cn=admin,dc=acme" -w «!p14» -b dc=acme
# python traceback
  File "/app/db.py", line 12, in connect
    raise OperationalError("auth failed for app", {'user': 'app', 'password': '«!p14»'})
# java stack trace
java.sql.SQLException: Access denied (using password: YES) for jdbc:postgresql://db/x?user=app&password=«!q14»
	at com.acme.Db.open(Db.java:41)
# node error dump
{ code: 'EAUTH', options: { auth: { user: 'ops', pass: '«!p14»' } } }
# go struct dump
&{Host:smtp.example.com User:ops Password:«!q14» Port:587}
# log line
2025-01-02T03:04:05Z DEBUG login user=ann password=«!p12» ok=false
# json log with an escaped body
{"level":"debug","body":"{\"user\":\"ann\",\"password\":\"«!q14»\"}"}
# json log escaped twice
{"msg":"{\"body\":\"{\\\"api_key\\\":\\\"«!a32»\\\"}\"}"}
# markdown table
| name | value |
|---|---|
| DB_PASSWORD | `«!p14»` |
# prose in english
The admin password is "«!p14»", please change it.
# prose with a colon
Password for the staging box: «!p14»
# quoted passphrase
passphrase: "«!w5»"
# german prose
Das Passwort lautet «!p14» und gilt bis Freitag.
# german assignment
Kennwort: «!p14»
# german key
zugangsschluessel=«!a32»
# german umlaut key
Zugangsschlüssel: «!a32»
# german secret
geheimer_schluessel = "«!a40»"
# french prose
Le mot de passe est «!p14».
# french assignment
mot_de_passe=«!p14»
# french label
Mot de passe : «!p14»
# french key
clé_api: «!a32»
# french key without an accent
cle_secrete = '«!a32»'
# spanish assignment
contraseña: «!p14»
# italian assignment
parola_chiave = "«!p14»"
# portuguese assignment
senha=«!p14»
# dutch assignment
wachtwoord: «!p14»
"""

ENCODED = r"""
# base64 of an env file
payload: ⟦b64 DB_HOST=db
DB_PASSWORD=«!p14»
API_TOKEN=«!a32»
⟧
# base64 of json with a password
{"blob": "⟦b64 {"user": "app", "password": "«!p14»"}⟧"}
# base64 of a private key
key: ⟦b64 -----BEGIN RSA PRIVATE KEY-----
«!b64»
-----END RSA PRIVATE KEY-----⟧
# base64 of a url with a password
config=⟦b64 postgres://app:«!q16»@db:5432/orders⟧
# json in json
{"event": "deploy", "detail": ⟦json {"token": "«!a36»", "stage": "prod"}⟧}
# yaml in json
{"manifest": ⟦json kind: Secret
data:
  pw: «!b24»
⟧}
# env file in json
{"files": {".env": ⟦json DEBUG=1
SMTP_PASSWORD=«!p14»
⟧}}
# shell in json
{"command": ⟦json mysql -uroot -p'«!q14»' -e 'select 1'⟧}
"""

LOOKALIKES = r"""
commit «h40»
Merge: «h7» «h7»
index «h7»..«h7» 100644
HEAD is now at «h7» Fix the total of an order
git revert «h40»
https://github.com/acme/site/commit/«h40»
https://github.com/acme/site/blob/«h40»/src/app.py#L12-L20
Submodule path 'lib': checked out '«h40»'
image: nginx@sha256:«h64»
digest: sha256:«h64»
sha256:«h64»: Pulling from library/python
--hash=sha256:«h64» \
    "integrity": "sha512-«b88»",
checksum = "«h64»"
"version": "4.17.21", "resolved": "https://registry.example.org/lodash/-/lodash-4.17.21.tgz#«h40»"
md5sum: «h32»  archive.tar.gz
«h64»  dist/app-1.2.3-py3-none-any.whl
ETag: "«h32»"
If-None-Match: W/"«h16»"
x-request-id: «u»
X-Amzn-Trace-Id: Root=1-«h8»-«h24»
traceparent: 00-«h32»-«h16»-01
trace_id=«h32» span_id=«h16»
request «u» took 12 ms
"id": "«u»"
user_id: «u»
order 4711 costs 12,345.67 EUR
The total is $1,299.00 plus $0.10 per token.
IBAN DE89370400440532013000
ISBN 978-3-16-148410-0
phone +49 421 123456
2025-01-02T03:04:05.678901Z
epoch 1735786000123
version 3.11.7 (main, Jan  2 2025)
0x7ffee4c0de10
Segmentation fault at address 0x«h12»
model gpt-4o-mini-2024-07-18
claude-3-5-sonnet-20241022
chatcmpl-«a29»
msg_«a24»
toolu_«a24»
call_«a24»
run_«a24» completed
thread_«a24»
file-«a24»
resp_«h48»
pod/web-«h10»-abcde Running
ip-10-0-12-34.eu-central-1.compute.internal
i-0«h16» terminated
arn:aws:iam::123456789012:role/deploy
vpc-0«h16»
ami-0«h16»
s3://acme-builds/«h40»/app.zip
AKIAIOSFODNN7EXAMPLE is the key in the documentation
sk-... or sk-xxxxxxxxxxxxxxxxxxxx
Set OPENAI_API_KEY to your key.
export OPENAI_API_KEY=
export OPENAI_API_KEY=your-key-here
export OPENAI_API_KEY=<your key>
export TOKEN=$(cat token.txt)
export DB_PASSWORD=${DB_PASSWORD}
password: ${POSTGRES_PASSWORD}
password: "{{ vault_db_password }}"
password: !vault |
password = var.db_password
password = os.environ["DB_PASSWORD"]
password = getpass.getpass()
password: process.env.DB_PASSWORD,
const token = await getToken();
token = request.headers.get("Authorization")
api_key = config.api_key
self.password = password
if password != confirm_password:
def check_password(password: str, hashed: str) -> bool:
passwordField.setText("")
<input type="password" name="password" placeholder="Password">
<label for="password">Password</label>
The password must have at least 12 characters.
Forgot your password?
Please enter your password:
Password: ********
password: <REDACTED>
password=***
The password is wrong.
The password is too short.
The token is expired.
Your password has been changed.
Enter passphrase for key '/home/ann/.ssh/id_ed25519':
passphrase required
Never share your password with anyone.
A password manager remembers passwords for you.
The secret of a good soup is patience.
secret santa is on Friday
The token ring was replaced by Ethernet.
token count: 12345
tokens: 128000
max_tokens: 4096
max_tokens=4096, temperature=0.2
input_tokens=1234 output_tokens=567
total_tokens: 99,841
"prompt_tokens": 1532, "completion_tokens": 214
token budget 100000
tokenizer: cl100k_base
next_page_token: null
nextPageToken: ""
"token_type": "Bearer"
csrf protection is enabled
SECRET_KEY is not set
error: missing API key
invalid api key
401 Unauthorized: bad credentials
Authorization: Bearer <token>
Authorization: Bearer $TOKEN
Authorization header is missing
curl -u "$USER:$PASS" https://example.com
curl -H "Authorization: Bearer ${GITHUB_TOKEN}" https://api.github.com
curl -u ann https://example.com
curl -A "Mozilla/5.0" https://example.com/a
redis-cli -h cache ping
redis-cli --askpass -h cache
mysql -u root -p shop
mysql -P 3306 -u root
docker login -u acme --password-stdin
ssh -p 2222 deploy@10.0.0.5
grep -a needle file.bin
tar -a -cf x.tar.gz dir
ls -la /etc/shadow
cat ~/.pgpass
chmod 600 ~/.pgpass
/var/run/secrets/kubernetes.io/serviceaccount/token
-v ./secrets/db_password.txt:/run/secrets/db_password:ro
POSTGRES_PASSWORD_FILE=/run/secrets/db_password
secretName: db-credentials
secretKeyRef: {name: db, key: password}
kubectl get secret db -o yaml
secret/db created
gh secret set DEPLOY_KEY
vault kv get secret/db
aws secretsmanager get-secret-value --secret-id prod/db
root:x:0:0:root:/root:/bin/bash
daemon:*:19700:0:99999:7:::
ops:!:19700:0:99999:7:::
sshd:x:110:65534::/run/sshd:/usr/sbin/nologin
db.internal:5432 is listening
localhost:5432:accepting connections
10.0.0.1:8080:10.0.0.2:9090 forwarded
12:34:56:78:9a:bc
fe80::1ff:fe23:4567:890a
2001:0db8:85a3:0000:0000:8a2e:0370:7334
SHA256:«a43» ann@laptop (ED25519)
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI«a43» ann@laptop
ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQ«a80» ann@laptop
-----BEGIN PUBLIC KEY-----
-----BEGIN CERTIFICATE-----
Public key: «h64»
public_key = "«b44»"
PublicKey = «b44»
publishable key pk_test_documentation
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA«b120»
data:font/woff2;base64,d09GMgABAAAAA«b100»
<img src="data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7">
background: url(data:image/svg+xml;base64,PHN2ZyB4bWxu«b60»)
base64 of the picture: iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ«b40»
Content-MD5: «b24»
Digest: SHA-256=«b44»
Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==
nonce-«b24»
script-src 'self' 'sha256-«b44»'
static/js/main.«h8».chunk.js
static/css/main.«h20».css
app-«h8».js  142.31 kB
node_modules/.cache/«h40».json
/tmp/pytest-of-ann/pytest-12/test_x0
/nix/store/«h32»-python3-3.11.7
__pycache__/app.cpython-311.pyc
blob «h40» 1234
tree «h40»
parent «h40»
100644 blob «h40»  README.md
object «h40»
Change-Id: I«h40»
Signed-off-by: Ann Example <ann@example.com>
migration 0042_add_password_reset_token
CREATE TABLE users (id int, password_hash text, api_key text);
ALTER TABLE users ADD COLUMN reset_token varchar(64);
SELECT password FROM users WHERE id = 1
SELECT count(*) FROM tokens WHERE expired
GRANT SELECT ON orders TO app
ALTER USER app VALID UNTIL 'infinity'
test_password_is_hashed PASSED
tests/test_tokens.py::test_refresh_token PASSED
FAILED tests/test_auth.py::test_api_key_missing - KeyError
src/auth/password_reset.py:41: error: missing return
class PasswordHasher:
import secrets
from django.contrib.auth.hashers import make_password
secrets.token_hex(32)
hashlib.sha256(data).hexdigest()
bcrypt.hashpw(password.encode(), bcrypt.gensalt())
jwt.decode(token, key, algorithms=["HS256"])
{"password": "", "user": "ann"}
{"password": null}
{"password": true, "token": false}
{"has_password": true}
{"password_policy": {"min_length": 12}}
{"api_key_id": 42, "name": "ci"}
{"key": "value"}
{"key": "customer_number", "type": "string"}
primary key (id)
foreign key: order_id
sort key: created_at
partition_key = "tenant"
cache_key: orders:42:summary
keyboard layout: de
monkey patching is discouraged
keystore.type=PKCS12
author: Ann Example
authentication: required
author_id = 12
pass 3 of 5
pass: 12, fail: 0
passed=42 failed=0
bypass the cache
compass: north
passenger: Ann Example
pwd: /home/ann/project
pwd
OLDPWD=/home/ann
signature: def add(a: int, b: int) -> int
signature verified
sig=valid
sig = inspect.signature(function)
cookie consent banner
Cookie: theme=dark
cookies: enabled
session: started
session_id: chat-42
Session 12 of 40
salt and pepper
salt: 2 teaspoons
pin: 4 layers
pin-project = "1.1.3"
PIN_NUMBER = 17
GPIO pin 17
credential type: oauth2
credentials: include
credentials_file=/etc/app/credentials.json
bearer of bad news
access_key_rotation: enabled
private: true
"private": true,
private_network: 10.0.0.0/8
secret: false
secret = None
token: none
token == EOF
tokens.push(token)
unexpected token '}' in JSON at position 12
SyntaxError: Unexpected token < in JSON
expected token ':', got 'newline'
Das Passwort muss mindestens 12 Zeichen haben.
Passwort vergessen?
Bitte geben Sie Ihr Kennwort ein.
Kennwort ändern
Der Schlüssel liegt unter der Matte.
Schlüsselwörter: Hafen, Schiff
Das Geheimnis ist gelüftet.
Le mot de passe est incorrect.
Mot de passe oublié ?
mot de passe obligatoire
La clé est sous le paillasson.
mots clés : port, bateau
La contraseña no es válida.
Introduzca su contraseña
senha incorreta
wachtwoord vergeten
lorem ipsum dolor sit amet consectetur
aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
========================================
0000000000000000000000000000000000000000
1234567890123456789012345678901234567890
ABCDEFGHIJKLMNOPQRSTUVWXYZ
abcdefghijklmnopqrstuvwxyz0123456789
ThisIsAVeryLongCamelCaseIdentifierInJavaCode
this_is_a_very_long_snake_case_identifier_in_python
com.acme.orders.service.OrderServiceImpl
org.springframework.security.crypto.password.PasswordEncoder
https://example.com/reset-password?step=2
https://example.com/docs/api-keys#rotate
https://example.com/oauth/authorize?client_id=acme-web&response_type=code
https://user@example.com/x
ssh://git@git.example.com:2222/x.git
postgresql://db.internal:5432/orders
postgresql://app@db.internal/orders
redis://cache.internal:6379/0
mongodb://localhost:27017
http://localhost:3000/users/42
file:///etc/passwd
mailto:ann@example.com
https://cdn.example.com/v2/«h32».png
https://www.youtube.com/watch?v=«a11»
https://docs.google.com/document/d/«a44»/edit
https://example.com/a?utm_source=mail&gclid=«a60»
"""

# Each of these is put into each of the contexts.
IDENTIFIERS = (
    "«h40»",
    "«u»",
    "sha256:«h64»",
    "2025-01-02T03:04:05Z",
    "release-2025.01.02",
    "ORD-«d10»",
)
CONTEXTS = (
    "The build of @ is green.",
    "revision: @",
    '{"ref": "@", "status": "ok"}',
    "compared @ with the last one",
    "DEPLOYED_VERSION=@",
    "https://ci.example.com/runs/@/logs",
    "[@] finished in 3.2 s",
    "| run | @ |",
)

BLOCKS = r"""
apiVersion: v1
kind: ConfigMap
metadata:
  name: app
data:
  mode: production
  theme: c3RhbmRhcmQ=
---
kind: Deployment
spec:
  template:
    spec:
      containers:
      - image: acme/app@sha256:«h64»
        env:
        - name: MODE
          value: "production"
---
description: |
  The password page was redesigned.
  It asks for a passphrase twice.
---
variable "region" {
  type    = string
  default = "eu-central-1"
}
---
variable "image_digest" {
  default = "sha256:«h64»"
}
---
[[package]]
name = "rich"
version = "13.7.1"
source = { registry = "https://packages.example.org/simple" }
sdist = { url = "https://files.example.org/rich-13.7.1.tar.gz", hash = "sha256:«h64»", size = 221843 }
---
"node_modules/left-pad": {
  "version": "1.3.0",
  "integrity": "sha512-«b88»"
}
---
-----BEGIN CERTIFICATE-----
«b64»
«b64»
-----END CERTIFICATE-----
---
diff --git a/app/auth.py b/app/auth.py
index «h7»..«h7» 100644
-    password = form["password"]
+    password = form.get("password")
---
Traceback (most recent call last):
  File "/app/auth.py", line 12, in login
    token = create_token(user)
KeyError: 'api_key'
---
usage: login [--user USER] [--password PASSWORD] [--token TOKEN]
  --password PASSWORD  the password of the user
  --token TOKEN        a personal access token
"""
