//! TLS to servers behind `https://`: who is trusted is what the system trusts, and a CA the config names.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{CertificateError, ClientConfig, Error, RootCertStore};

/// Largest `ca_file`: every public CA there is fits many times.
const CA_BYTES_MAX: u64 = 4 << 20;

/// What the system trusts, read once.
static SYSTEM: OnceLock<Vec<CertificateDer<'static>>> = OnceLock::new();

/// Why there is no TLS connection. Each sentence goes on from the server's name.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TlsError {
    #[error(
        "shows a certificate that is not trusted: {0}. Correct it, or name its CA with `ca_file` in the config"
    )]
    Untrusted(String),
    #[error("cannot be reached: {0}. Start it, or correct its address in the config")]
    Unreachable(String),
}

pub struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Tls {
    /// For a host; or a sentence of what is wrong with the settings.
    pub fn new(host: &str, ca_file: Option<&Path>) -> Result<Self, String> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| format!("`{host}` is no name a certificate can be for"))?;
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(SYSTEM.get_or_init(system).iter().cloned());
        if let Some(path) = ca_file {
            for certificate in read(path)? {
                roots
                    .add(certificate)
                    .map_err(|error| format!("the `ca_file` {} cannot be used: {error}", path.display()))?;
            }
        }
        if roots.is_empty() {
            return Err(
                "this system has no root certificates; install them, or name a CA with `ca_file`".to_owned()
            );
        }
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { connector: TlsConnector::from(Arc::new(config)), name })
    }

    pub async fn wrap(&self, stream: TcpStream) -> Result<TlsStream<TcpStream>, TlsError> {
        self.connector.connect(self.name.clone(), stream).await.map_err(|error| {
            let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<Error>());
            match cause {
                Some(Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
                    TlsError::Untrusted("neither the system nor `ca_file` knows its issuer".to_owned())
                }
                Some(Error::InvalidCertificate(why)) => TlsError::Untrusted(why.to_string()),
                Some(_) | None => TlsError::Unreachable(format!("no TLS connection: {error}")),
            }
        })
    }
}

fn system() -> Vec<CertificateDer<'static>> {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "a root certificate of the system cannot be read");
    }
    found.certs
}

fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |why: &dyn std::fmt::Display| format!("the `ca_file` {} {why}", path.display());
    if !path.is_absolute() {
        return Err(wrong(&"is no absolute path"));
    }
    let size = std::fs::metadata(path).map_err(|error| wrong(&format!("cannot be read: {error}")))?.len();
    if size > CA_BYTES_MAX {
        return Err(wrong(&format!("is larger than {CA_BYTES_MAX} bytes")));
    }
    let pem = std::fs::read(path).map_err(|error| wrong(&format!("cannot be read: {error}")))?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .map_err(|error| wrong(&format!("is no PEM: {error}")))?;
    if certificates.is_empty() {
        return Err(wrong(&"holds no certificate"));
    }
    Ok(certificates)
}
