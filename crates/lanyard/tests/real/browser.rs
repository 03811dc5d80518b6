//! A real browser before the daemon: a page of its own origin attaches with a token as a subprotocol, one without a
//! token or of another origin does not.
//!
//! Needs Chromium and its driver and no agent: `cargo test -p lanyard --test real browser::`. On Debian they are the
//! packages `chromium` and `chromium-driver`; without them the table of `cargo xtask test real` says `not tried`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Daemon, PATIENCE, Setup, head};
use crate::through::tally;

/// Opens a WebSocket and answers with how it went: the first frames, and the answer to a request.
const ATTACH: &str = r#"
const [url, protocols, done] = arguments;
const seen = [];
let socket;
try { socket = new WebSocket(url, protocols); } catch (error) { done({error: String(error)}); }
socket.onopen = () => seen.push({open: socket.protocol});
socket.onmessage = (message) => {
    const frame = JSON.parse(message.data);
    seen.push(frame);
    if (frame.type === "connected") socket.send(JSON.stringify({ref: "1", do: "get_session"}));
    if (frame.type === "reply") { done({seen}); socket.close(); }
};
socket.onclose = (close) => done({closed: close.code, seen});
"#;

/// Reads the first piece of an event stream with `fetch`, which can send a header where `EventSource` cannot.
const FETCH: &str = r#"
const [url, token, done] = arguments;
fetch(url, {headers: {authorization: "Bearer " + token}})
    .then((answer) => answer.body.getReader().read())
    .then((piece) => done({text: new TextDecoder().decode(piece.value)}))
    .catch((error) => done({error: String(error)}));
"#;

/// A browser and its driver. Both end with it.
struct Browser {
    driver: Child,
    address: String,
    session: String,
    profile: tempfile::TempDir,
    /// Held, so that the driver can go on speaking.
    _said: BufReader<ChildStdout>,
}

impl Browser {
    /// Nothing where no driver is installed.
    fn start() -> Option<Self> {
        let profile = tempfile::tempdir().unwrap();
        let driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut driver = match driver {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            driver => driver.unwrap(),
        };
        let mut said = BufReader::new(driver.stdout.take().unwrap());
        let mut line = String::new();
        let port = loop {
            line.clear();
            assert_ne!(said.read_line(&mut line).unwrap(), 0, "chromedriver ended");
            if let Some((_, port)) = line.split_once("successfully on port ") {
                break port.trim().trim_end_matches('.').to_owned();
            }
        };
        let address = format!("127.0.0.1:{port}");
        let mut browser = Self { driver, address, session: String::new(), profile, _said: said };
        let folder = browser.profile.path().display().to_string();
        let flags = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            // Nothing leaves the machine.
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        ];
        let flags: Vec<String> =
            flags.into_iter().map(str::to_owned).chain([format!("--user-data-dir={folder}")]).collect();
        let wanted = json!({"capabilities": {"alwaysMatch": {"goog:chromeOptions": {"args": flags}}}});
        let made = browser.call("POST", "/session", &wanted);
        let session = made["sessionId"].as_str().unwrap_or_else(|| panic!("{made}"));
        session.clone_into(&mut browser.session);
        Some(browser)
    }

    /// One request to the driver. It writes its headers without a space, which other helpers do not read.
    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(2 * PATIENCE)).unwrap();
        let body = body.to_string();
        let request = head(method, path, &[("host", self.address.as_str())], Some(&body)) + &body;
        stream.write_all(request.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            match line.trim_end().split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.trim().parse().unwrap();
                }
                Some(_) => {}
                None if line.starts_with("HTTP/") => {}
                None => break,
            }
        }
        let mut answer = vec![0; length];
        reader.read_exact(&mut answer).unwrap();
        serde_json::from_slice::<Value>(&answer).unwrap()["value"].clone()
    }

    /// Opens a page, and answers what a script on it says.
    fn run(&self, page: &str, script: &str, arguments: &Value) -> Value {
        let opened = self.call("POST", &format!("/session/{}/url", self.session), &json!({"url": page}));
        assert!(opened.is_null(), "{page}: {opened}");
        let script = json!({"script": script, "args": arguments});
        self.call("POST", &format!("/session/{}/execute/async", self.session), &script)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            self.call("DELETE", &format!("/session/{}", self.session), &json!({}));
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// A page of another origin, for as many as ask.
fn elsewhere() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let page = "<!doctype html><title>elsewhere</title>";
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n",
                page.len()
            );
            let _ = stream.write_all((head + page).as_bytes());
        }
    });
    format!("http://{address}/")
}

#[test]
fn a_browser_attaches_from_the_daemons_own_origin_with_a_token_and_not_otherwise() {
    let daemon = Daemon::start(Setup::default());
    let made = daemon.request("POST", "/api/v1/sessions", &[], Some("{}"));
    let session = made.json()["session"].as_str().unwrap().to_owned();
    let (address, token) = (daemon.address(), daemon.token());
    let Some(browser) = Browser::start() else {
        return tally::note("browser", "-", "attach", "not tried: no chromedriver");
    };
    // Whatever the daemon answers there, it is a page of its origin.
    let (own, other) = (format!("http://{address}/"), elsewhere());
    let url = format!("ws://{address}/api/v1/sessions/{session}/attach?client=web");
    let attach = |page: &str, protocols: &[&str]| browser.run(page, ATTACH, &json!([url, protocols]));
    let with_token = ["lanyard.v1".to_owned(), format!("lanyard.token.{token}")];
    let with_token: Vec<&str> = with_token.iter().map(String::as_str).collect();

    let went = attach(&own, &with_token);
    assert_eq!(went["seen"][0], json!({"open": "lanyard.v1"}), "{went}");
    assert_eq!(went["seen"][1]["type"], "connected", "{went}");
    assert_eq!(went["seen"][1]["session_id"], session, "{went}");
    let reply = went["seen"].as_array().unwrap().last().unwrap();
    assert_eq!((&reply["status"], &reply["body"]["id"]), (&json!(200), &json!(session)), "{went}");

    // A browser tells a page only that it failed, whatever the reason was.
    let refused = json!({"closed": 1006, "seen": []});
    assert_eq!(attach(&own, &[]), refused, "without a token");
    assert_eq!(attach(&own, &["lanyard.v1", "lanyard.token.lyd_guess"]), refused, "with a wrong one");
    assert_eq!(attach(&other, &with_token), refused, "from another origin, though with the token");
    let in_query = format!("{url}&token={token}");
    assert_eq!(browser.run(&own, ATTACH, &json!([in_query, []])), refused, "with the token in the address");

    let stream = format!("http://{address}/api/v1/sessions/{session}/attach");
    let read = browser.run(&own, FETCH, &json!([stream, token]));
    assert!(read["text"].as_str().unwrap_or_default().starts_with("event: connected\ndata: {"), "{read}");
    assert!(browser.run(&other, FETCH, &json!([stream, token]))["error"].is_string());
    let left = daemon.request("GET", "/api/v1/sessions?limit=10", &[], None).json();
    assert_eq!(left["sessions"].as_array().unwrap().len(), 1);
}
