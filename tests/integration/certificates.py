"""Certificates for tests, made by the openssl command: NAME.pem and NAME.key in a folder. All are valid
for localhost and 127.0.0.1, for one day by default."""
import subprocess

NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1"
NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout")


class Certificates:
    """At first: the authority "ca", and the certificates "server" and "client" that it issued."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.authority("ca")
        self.issue("server")
        self.issue("client")

    def pem(self, name):
        return str(self.folder / f"{name}.pem")

    def key(self, name):
        return str(self.folder / f"{name}.key")

    def authority(self, name):
        self.openssl("req", "-x509", *NEW_KEY, self.key(name), "-days", 1, "-subj", f"/CN={name}",
                     "-out", self.pem(name))

    def issue(self, name, by="ca", days=1):
        """With days=-1 the certificate expired yesterday."""
        request = self.folder / f"{name}.csr"
        self.openssl("req", *NEW_KEY, self.key(name), "-subj", f"/CN={name}", "-addext", NAMES,
                     "-out", request)
        self.openssl("x509", "-req", "-copy_extensions", "copy", "-in", request, "-days", days,
                     "-CA", self.pem(by), "-CAkey", self.key(by), "-CAcreateserial", "-out", self.pem(name))

    @staticmethod
    def openssl(*arguments):
        done = subprocess.run(["openssl", *map(str, arguments)], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise AssertionError(f"openssl {arguments}: {done.stdout}")
        return done.stdout
