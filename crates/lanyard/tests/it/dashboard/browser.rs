//! A browser as far as the daemon can tell: TCP, a Host, an Origin, and a jar with one cookie.

use std::net::TcpStream;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::client;
use tokio_tungstenite::tungstenite::http::Request;
use tokio_tungstenite::tungstenite::{Error, HandshakeError, WebSocket};

use crate::support::{Answer, Daemon, PATIENCE, exchange};

#[derive(Debug, Clone)]
pub(super) struct Browser {
    pub(super) address: String,
    /// What it sends along, as `name=value`.
    pub(super) cookie: Option<String>,
}

impl Browser {
    pub(super) fn new(daemon: &Daemon) -> Self {
        Self { address: daemon.address(), cookie: None }
    }

    /// One that has used a link of this role.
    pub(super) fn signed_in(daemon: &Daemon, role: &str) -> Self {
        let mut browser = Self::new(daemon);
        let answer = browser.sign_in(&code(&link(daemon, &json!({ "role": role }))));
        assert_eq!(answer.status, 200, "{}", answer.text());
        browser
    }

    /// Uses a code, and keeps the cookie it gets.
    pub(super) fn sign_in(&mut self, code: &str) -> Answer {
        let body = json!({ "code": code }).to_string();
        let answer = self.post("/api/v1/sign-in", &body);
        if let Some(set) = answer.header("set-cookie") {
            self.cookie = set.split(';').next().map(str::to_owned);
        }
        answer
    }

    pub(super) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn port(&self) -> &str {
        self.address.rsplit_once(':').unwrap().1
    }

    pub(super) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], None)
    }

    /// As its own pages do: with their origin.
    pub(super) fn post(&self, path: &str, body: &str) -> Answer {
        self.send("POST", path, &[("origin", &self.origin())], Some(body))
    }

    pub(super) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> Answer {
        let mut all = vec![("host", self.address.as_str())];
        all.extend(self.cookie.as_deref().map(|cookie| ("cookie", cookie)));
        all.extend_from_slice(headers);
        exchange(TcpStream::connect(&self.address).unwrap(), method, path, &all, body).unwrap()
    }

    /// Opens a WebSocket with its cookie, or gives back the code of the refusal.
    pub(super) fn socket(
        &self,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Result<WebSocket<TcpStream>, String> {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut request = Request::builder()
            .uri(format!("ws://{}{path}", self.address))
            .header("host", &self.address)
            .header("connection", "keep-alive, Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-protocol", "lanyard.v1")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request = request.header("cookie", self.cookie.as_deref().unwrap_or_default());
        match client(request.body(()).unwrap(), stream) {
            Ok((socket, _)) => Ok(socket),
            Err(HandshakeError::Failure(Error::Http(response))) => {
                let body = response.body().clone().unwrap_or_default();
                let problem: Value = serde_json::from_slice(&body).unwrap();
                Err(problem["code"].as_str().unwrap().to_owned())
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// A link, as its receipt says it.
pub(super) fn link(daemon: &Daemon, body: &Value) -> Value {
    let made = daemon.request("POST", "/api/v1/sign-in/links", &[], Some(&body.to_string()));
    assert_eq!(made.status, 201, "{}", made.text());
    made.json()
}

/// What stands behind `#` in it.
pub(super) fn code(link: &Value) -> String {
    link["url"].as_str().unwrap().split_once("/sign-in#").unwrap().1.to_owned()
}
