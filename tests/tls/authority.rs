//! Certificates for the tests, made by OpenSSL's program: authorities, and folders with the file names of qemu and nbdkit.

use std::path::{Path, PathBuf};

use crate::common::{Scratch, Tool};

/// A period of validity: its start and end, or days from now.
#[derive(Clone, Copy)]
pub(crate) enum Period {
    /// Now.
    Valid,
    /// In the past.
    Expired,
    /// In the future.
    NotYet,
    /// From now on for so many days.
    Days(u32),
}

impl Period {
    fn options(self) -> Vec<String> {
        let between = |from: &str, until: &str| {
            ["-startdate", from, "-enddate", until].map(str::to_owned).to_vec()
        };
        match self {
            Period::Valid => between("20200101000000Z", "20491231000000Z"),
            Period::Expired => between("20200101000000Z", "20210101000000Z"),
            Period::NotYet => between("20480101000000Z", "20491231000000Z"),
            Period::Days(days) => vec!["-days".to_owned(), days.to_string()],
        }
    }
}

const NEW_KEY: [&str; 5] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

const CONFIG: &str = "[ca]\ndefault_ca=own\n[own]\ndir=.\ndatabase=index.txt\nnew_certs_dir=.\nrand_serial=yes\n\
                      default_md=sha256\npolicy=any\nunique_subject=no\ncopy_extensions=copy\n\
                      [any]\ncommonName=supplied\n";

/// The names of a server at the addresses that tests use.
pub(crate) const SERVER: &str = "DNS:localhost,IP:127.0.0.1";

/// An authority with a folder of its own.
pub(crate) struct Authority {
    folder: PathBuf,
}

impl Authority {
    pub(crate) fn new(scratch: &Scratch, name: &str) -> Authority {
        let folder = scratch.join(name);
        std::fs::create_dir(&folder).expect("a folder");
        let authority = Authority { folder };
        std::fs::write(authority.folder.join("ca.cnf"), CONFIG).expect("a configuration");
        std::fs::write(authority.folder.join("index.txt"), "").expect("a list");
        let subject = format!("/CN={name}");
        let own = ["req", "-x509", "-days", "2", "-subj", &subject];
        let files = ["-keyout", "ca-key.pem", "-out", "ca-cert.pem"];
        authority.openssl(&[&own[..], &NEW_KEY, &files].concat());
        authority
    }

    fn openssl(&self, args: &[&str]) {
        Tool::new("openssl").args(args).folder(&self.folder).run().ok();
    }

    /// Writes into `folder` the certificate of this authority, and one of a `kind` (`server` or `client`) with its key.
    pub(crate) fn sign(&self, folder: &Path, kind: &str, names: &str, period: Period) {
        std::fs::create_dir_all(folder).expect("a folder");
        let file = |end: &str| folder.join(format!("{kind}-{end}")).display().to_string();
        let (key, request, certificate) = (file("key.pem"), file("request"), file("cert.pem"));
        let (new, names) = (format!("{certificate}.new"), format!("subjectAltName={names}"));
        let subject = format!("/CN={kind}");
        let asked = ["req", "-subj", &subject, "-addext", &names];
        let files = ["-keyout", &key, "-out", &request];
        self.openssl(&[&asked[..], &NEW_KEY, &files].concat());
        let by = ["ca", "-batch", "-config", "ca.cnf", "-cert", "ca-cert.pem", "-notext"];
        let files = ["-keyfile", "ca-key.pem", "-in", &request, "-out", &new];
        let period = period.options();
        let period: Vec<&str> = period.iter().map(String::as_str).collect();
        self.openssl(&[&by[..], &files, &period].concat());
        std::fs::rename(&new, &certificate).expect("a certificate");
        std::fs::copy(self.folder.join("ca-cert.pem"), folder.join("ca-cert.pem")).expect("a file");
    }

    /// The same, in a new folder of `scratch` called `name`.
    pub(crate) fn folder(
        &self,
        scratch: &Scratch,
        name: &str,
        kind: &str,
        names: &str,
        period: Period,
    ) -> PathBuf {
        let folder = scratch.join(name);
        self.sign(&folder, kind, names, period);
        folder
    }
}
