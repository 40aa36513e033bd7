"""Further secrets and look-alikes, in the notation of `real_carriers`: what the rules passed over in a third look.

Like the others they were written without a look at the rules; here are those that were missed then, and their kin.
"""

SECRETS = r"""
# flag of a configuration command
aws configure set aws_secret_access_key «!a40»
# azure devops token of 84 characters
got «!a76»AZDO«a4» from the portal
# azure function url
curl 'https://acme.azurewebsites.net/api/run?code=«!a54»==&clientId=default'
# sas key of an event grid
aeg-sas-key: «!b44»
# fastly key
Fastly-Key: «!a32»
# tencent key id
secretId: 'AKID«!a32»'
# redis configuration
port 6379
requirepass «!q12»
# redis monitor
1700000000.123456 [0 10.0.0.2:5555] "AUTH" "default" "«!a24»"
# mysql user with a plugin
ALTER USER 'root'@'localhost' IDENTIFIED WITH mysql_native_password BY '«!p12»';
# postgres role
ALTER ROLE app WITH LOGIN PASSWORD 'gr33n-«!q8»';
# sqlserver login
CREATE LOGIN etl WITH PASSWORD = N'etl-«!q8»', CHECK_POLICY = OFF;
# pgpass with a dash
db.internal:5432:shop:app:Hh8-«!q10»
# sqlcmd
sqlcmd -S localhost -U sa -P '«!p14»' -Q 'SELECT 1'
# rows of an insert
INSERT INTO users (email, password, role) VALUES ('a@b.de', '«!q10»', 'admin'), ('c@d.de', '«!w2»', 'it''s me');
# csv
user,password,role
bob,«!q10»,admin
ann,"«!p12»",user
# markdown table
| user | password |
|------|----------|
| bob  | «!q10» |
# key and secret of kafka
basic.auth.user.info=ABCDEFGH12345678:«!a64»
# first argument of a client
co = cohere.ClientV2("«!a40»")
# second argument of a client
Client('AC«h32»', '«!h32»')
# fireworks
fireworks fw_«!a22» ok
# voyage
voyageai.Client('pa-«!a43»')
# llamacloud
LlamaParse('llx-«!a48»')
# runpod
got rpa_«!a46» today
# jina
got jina_«!h32»«!a28» from the dashboard
# resend
new Resend('re_«!a8»_«!a24»')
# old notion token
NOTION: secret_«!a43»
# posthog
POSTHOG: phx_«!a43»
# dynatrace
Api-Token dt0c01.«!k24».«!k64»
# typeform
tfp_«!a44»_«!a14»
# hubspot
hapi: pat-na1-«!u»
# launchdarkly
ld = LDClient('sdk-«!u»')
# mapbox
mapboxgl: sk.eyJ1Ijoi«!a60».«!a22»
# flutterwave
FLW('FLWSECK-«!h32»-X')
# sourcegraph
SRC: sgp_«h16»_«!h40»
# cursor
key_«!h64» is mine
# honeycomb
x-honeycomb-team: hcaik_«!h58»
# login with a bare key
wandb login «!h40»
# old vault token
vault login s.«!a24»
# vault root token
Initial Root Token: s.«!a24»
# vault secret id
vault write auth/approle/login role_id=abc secret_id=«!u»
# snyk
snyk auth «!u»
# ngrok
ngrok config add-authtoken «!a27»_«!a21»
# genie key
Authorization: GenieKey «!u»
# okta
Authorization: SSWS 00«!a40»
# digest
Authorization: Digest username="bob", realm="x", nonce="abc", uri="/", response="«!h32»"
# pair of an auth argument
razorpay.Client(auth=('rzp_live_abcdefghijklmn', '«!a24»'))
# smtp login
s.login("mailer@acme.com", "«!p12»")
# pdo
new PDO('mysql:host=db;dbname=x', 'app', 'pdo_«!q8»');
# mysqli
mysqli_connect('localhost', 'root', '«!q10»', 'shop');
# jdbc connection
DriverManager.getConnection("jdbc:mysql://db/x", "app", "drv_«!q8»");
# credentials
.withCredentials("app", "«!q10»")
# setter
dataSource.setPassword("«!q10»");
# rust string
let password: &str = "«!q10»";
# rust bytes
pub const SECRET_KEY: &[u8] = b"«!a32»";
# perl
my $dbpass = '«!q10»';
# default in javascript
const secret = process.env.JWT_SECRET || '«!q12»';
# default in python
SECRET = os.environ.get("SECRET_KEY", "dev-fallback-«!q8»")
# set in go
os.Setenv("API_TOKEN", "«!a24»")
# signature of a jwt
jwt.sign(payload, 'shh-«!q8»', { expiresIn: '1h' })
# hmac
hmac.new(b"«!p12»", body, "sha256")
# hmac in node
crypto.createHmac('sha256', '«!q12»')
# keytool
keytool -importkeystore -srcstorepass «!q10» -deststorepass changeit
# zip
zip -r -P «!q10» x.zip dir/
# 7z
7z a -p«!q10» x.7z dir
# lftp
lftp -u bob,«!q10» ftp.acme.com
# smbclient
smbclient //srv/share -U bob%«!q10»
# windows user
net user bob «!p12» /add
# sudo
echo '«!q10»' | sudo -S apt update
# chpasswd
echo 'root:«!q10»' | chpasswd
# passwd
echo «!q10» | passwd --stdin bob
# wrangler
echo '«!a24»' | wrangler secret put API_KEY
# login from a heredoc
cat <<EOF | docker login -u bob --password-stdin
«!q10»
EOF
# github secret
gh secret set API_KEY --body '«!a20»'
# key vault
az keyvault secret set --vault-name v --name n --value «!p12»
# parameter store
aws ssm put-parameter --name /prod/db/password --type SecureString --value '«!p12»'
# secrets manager
aws secretsmanager create-secret --name prod/db --secret-string '«!p12»'
# wifi
nmcli dev wifi connect Home password Ab!«!p10»
# proxy user
curl --proxy-user bob:«!q10» https://x.example
# cookie of curl
curl -b 'PHPSESSID=«!a26»' https://x.example
# kubectl literal
kubectl create secret generic db --from-literal=pw=«!q12» --from-literal=user=app
# squid
cache_peer p parent 3128 0 login=bob:«!q10»
# imap
a1 LOGIN bob «!q10»
# token before x-oauth-basic
https://«!h40»:x-oauth-basic@github.com/acme/x
# code of an authorization
https://app.example/cb?code=4/0A«!a70»&state=xyz
# signature with tildes
https://d1.cloudfront.net/x.mp4?Expires=1790000000&Signature=«!a40»~«!a40»-~«!a40»&Key-Pair-Id=K2
# percent-encoded json
data=%7B%22password%22%3A%22«!q10»%22%7D
# soap
<wsse:Password Type="http://x#PasswordText">«!q10»</wsse:Password>
# plist
<key>APIToken</key>
<string>«!a30»</string>
# android strings
<string name="api_key">«!a30»</string>
# input of a form
<input type="password" name="pw" value="«!q10»"/>
# htpasswd in a compose file
traefik.http.middlewares.a.basicauth.users=bob:$$apr1$$«a8»$$«!a22»
# value on its own line
db_password:
  «!q12»
# error of pydantic
api_key
  String should have at most 5 characters [type=string_too_long, input_value='«!a24»', input_type=str]
# seed phrase
My seed phrase is: legal winner thank year wave sausage worth useful legal winner thank yellow «!w1»
# mnemonic
mnemonic: "legal winner thank year wave sausage worth useful legal winner thank yellow «!w1»"
# strong password in prose
The admin password is Giraffe-«!q6»! and do not tell anyone.
# strong password after a verb
use password Ab!«!p10» to log in
# italian
parola d'ordine: «!q10»
# polish
hasło: «!q10»
# turkish
Şifre: «!q10»
# czech
heslo: «!q10»
# arabic
كلمة المرور: «!q10»
# hebrew
סיסמה: «!q10»
# hindi
पासवर्ड: «!q10»
# vietnamese
mật khẩu: «!q10»
# russian, capitalised
Пароль: «!q10»
# chinese sentence
数据库密码是 «!q10»
"""

LOOKALIKES = r"""
PASSWORD=`cat pw.txt`
value: {{ .Values.secret | b64enc }}
"login.password": "Passwort",
password: "Passwort"
Passwort: mindestens 8 Zeichen
Read-Host -AsSecureString 'Password'
$password = Read-Host
$cred = Get-Credential
private_key: Ed25519PrivateKey | Ed448PrivateKey
def __init__(self, api_keys: APIKeys) -> None:
- **api_key:** explicit ``api_key`` (returned unchanged)
mysql -u root -p shop
mkdir -p src/password/reset2
docker run -p 8080:80 nginx
ssh -p 2222 bob@host
unzip -p archive.zip docs/password1.txt
cp -p password1 password2
getPassword("database")
vault.secret("prod/db1")
keyring.get_password("service1", "bob2")
os.environ.get("SECRET_KEY", "")
if (password || confirmation) {
token ?? undefined
connect("db1.internal", 5432, "shop1")
client = Client("123e4567-e89b-12d3-a456-426614174000")
login(user, password)
auth=(username, password1)
jwt.decode(token, key, algorithms=["HS256"])
hmac.new(key, message, hashlib.sha256)
INSERT INTO users (email, password) VALUES (?, ?)
INSERT INTO users (email, password) VALUES (%s, %s);
INSERT INTO users (id, name) VALUES (1, 'hunter2x')
IDENTIFIED WITH mysql_native_password BY ?
echo "$PASSWORD" | sudo -S true
echo done | tee log1.txt
echo hello1 | base64
password as a query parameter
use password authentication
the password manager of sudo
set the password to expire
secret to everybody
?code=authorization_code_from_the_redirect
GET /callback?code=404
exit code=12345678901234567890123456
secret_id = "prod/db/password"
password:: Password
the passphrase for the key
mnemonic: a word that helps you remember what the letters of something stand for, such as roygbiv
net user
net use
x = s.startsWithSomethingLonger
a.compactOneTwoThree
--password-stdin < token.txt
bypass: hunter2
compass=north1
surpassed: 12a
"""

BLOCKS = r"""
user,password
-- an example without rows

and prose
---
'PASSWORD-FIELD',
'BASE64-DECODE',
'SHA1-DIGEST',
---
| option | password |
|--------|----------|
| type | string |
| required | yes |
---
from auth import (
    user,
    password,
    sha256sum,
)
---
password:
  required: true
---
token:
  The token of the user.
---
$ docker login -u bob --password-stdin <<< "$TOKEN"
Login Succeeded
WARNING
---
name
  String should have at most 5 characters [type=string_too_long, input_value='abcdefgh1', input_type=str]
"""
