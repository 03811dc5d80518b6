//! A server behind an HTTP address of the config, and the connections to it: MCP servers and the embeddings endpoint. It
//! knows nothing of what is sent.

mod pool;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use axum::response::Response;
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use lanyard_api::agents::settings::McpHttp;
use tokio::time::Duration;

use crate::tls::{Tls, TlsError};
use pool::Pool;
pub use pool::{Lent, whole};

/// Why a server gave no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Trouble {
    #[error("cannot be reached: {0}. Start it, or correct its address in the config")]
    Unreachable(String),
    #[error(
        "shows a certificate that is not trusted: {0}. Correct it, or name its CA with `ca_file` in the config"
    )]
    Untrusted(String),
    #[error(
        "broke the connection off: {0}. Whether the call was carried out is not known; look before you repeat it"
    )]
    Broken(String),
    #[error("gave no answer within {} ms. It was told to give the call up; raise `timeout_ms` if it needs longer", .0.as_millis())]
    Slow(Duration),
    #[error("answered with more than {0} bytes. Ask for less")]
    TooLarge(usize),
    #[error("refused Lanyard's credentials with status {0}. Correct its `headers` in the config")]
    Denied(u16),
    #[error("cannot be started: {0}. Correct its command in the config")]
    NotStarted(String),
    #[error(
        "ended while it worked on this{0}. It is started again with the next call; whether this one was carried out is not known"
    )]
    Died(String),
    #[error("says nothing that can be understood: {0}")]
    Nonsense(String),
    #[error("has too many clients; end some of them, or wait until idle ones are forgotten")]
    Crowded,
    #[error(
        "is being closed, since the daemon is ending or its session has ended. The tool may have run; check before you repeat the call"
    )]
    Closing,
}

impl From<TlsError> for Trouble {
    fn from(error: TlsError) -> Self {
        match error {
            TlsError::Untrusted(why) => Self::Untrusted(why),
            TlsError::Unreachable(why) => Self::Unreachable(why),
        }
    }
}

/// Where a server is, and the connections to it.
#[derive(Debug)]
pub struct HttpEndpoint {
    target: Uri,
    host: HeaderValue,
    headers: HeaderMap,
    pool: Arc<Pool>,
}

/// A request as it goes to the server.
#[derive(Debug)]
pub struct Outgoing {
    pub method: Method,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl HttpEndpoint {
    /// What the config says, understood; or a sentence of what is wrong with it.
    pub fn new(settings: &McpHttp) -> Result<Self, String> {
        let url: Uri =
            settings.url.parse().map_err(|error| format!("`{}` is no address: {error}", settings.url))?;
        let (is_safe, port) = match url.scheme_str() {
            Some("http") => (false, 80),
            Some("https") => (true, 443),
            _ => return Err(format!("`{}` begins with neither http:// nor https://", settings.url)),
        };
        let authority = url.authority().ok_or_else(|| format!("`{}` names no host", settings.url))?;
        if authority.as_str().contains('@') {
            return Err("an address must not hold a password; use `headers`".to_owned());
        }
        let name = authority.host().trim_matches(['[', ']']).to_owned();
        let tls = match (is_safe, &settings.ca_file) {
            (true, ca_file) => Some(Tls::new(&name, ca_file.as_deref())?),
            (false, None) => None,
            (false, Some(_)) => return Err("`ca_file` is for an https:// address".to_owned()),
        };
        let place = (name, authority.port_u16().unwrap_or(port));
        let host = HeaderValue::from_str(authority.as_str()).map_err(|error| error.to_string())?;
        let path = url.path_and_query().map_or("/", |path| path.as_str());
        let target = path.parse().map_err(|_| format!("`{path}` is no path"))?;
        let pool = Arc::new(Pool::new(place, tls));
        Ok(Self { target, host, headers: headers(&settings.headers)?, pool })
    }

    /// Closes connections that lie idle.
    pub fn sweep(&self) {
        self.pool.sweep();
    }

    /// Sends a request. The time is that until the answer begins.
    pub async fn send(&self, out: Outgoing, patience: Duration) -> Result<Response<Lent>, Trouble> {
        let mut request = Request::new(Full::new(out.body));
        *request.method_mut() = out.method;
        *request.uri_mut() = self.target.clone();
        *request.headers_mut() = out.headers;
        let headers = request.headers_mut();
        headers.insert(header::HOST, self.host.clone());
        for (name, value) in &self.headers {
            headers.insert(name, value.clone());
        }
        self.pool.send(request, patience).await
    }

    /// Sends a document and waits for all of the answer: its status and its bytes, or a sentence of what is wrong.
    pub async fn post(&self, body: Bytes, patience: Duration, max: usize) -> Result<(u16, Bytes), String> {
        let out = Outgoing { method: Method::POST, headers: HeaderMap::new(), body };
        let answer = self.send(out, patience).await.map_err(|trouble| trouble.to_string())?;
        let status = answer.status().as_u16();
        let body = answer.into_body().whole(max).await.map_err(|trouble| trouble.to_string())?;
        Ok((status, body))
    }
}

fn headers(settings: &BTreeMap<String, String>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in settings {
        let key: HeaderName = name.parse().map_err(|_| format!("`{name}` is no header"))?;
        // The value may be a secret: it is not repeated.
        let mut value: HeaderValue =
            value.parse().map_err(|_| format!("the value of header `{name}` cannot be sent"))?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_cannot_be_reached_is_said_at_once() {
        let with = |url: &str, ca_file: Option<&str>| {
            let (url, headers) = (url.to_owned(), BTreeMap::new());
            HttpEndpoint::new(&McpHttp {
                url,
                headers,
                timeout_ms: None,
                once: Vec::new(),
                ca_file: ca_file.map(Into::into),
            })
        };
        let new = |url: &str| with(url, None);
        for (url, file, word) in [
            ("https://x.test/", "relative.pem", "absolute"),
            ("https://x.test/", "/no/such.pem", "/no/such.pem cannot be read"),
            ("https://x.test/", "/dev/null", "holds no certificate"),
            ("http://x.test/", "/dev/null", "https://"),
        ] {
            assert!(with(url, Some(file)).unwrap_err().contains(word), "{url} {file}");
        }
        assert!(new("http://127.0.0.1:9/mcp?x=1").is_ok());
        for (url, word) in [("ftp://x", "http://"), ("", "address"), ("http://a:b@c/", "password")] {
            assert!(new(url).unwrap_err().contains(word), "{url}");
        }
    }
}
