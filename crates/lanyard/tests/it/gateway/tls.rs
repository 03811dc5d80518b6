//! Servers behind `https://`, with certificates of a CA of this test.

use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use serde_json::json;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::kit::Stage;
use super::server::{Server, echoed};

/// A CA in a file, and a server's settings with a certificate of it for this name.
fn certified(folder: &tempfile::TempDir, name: &str) -> (PathBuf, Arc<ServerConfig>) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    // A name of its own, or one CA would be taken for the other.
    params.distinguished_name.push(DnType::CommonName, format!("the CA of {name}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let file = folder.path().join(format!("{name}.pem"));
    std::fs::write(&file, ca.pem()).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &ca).unwrap();
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)
        .unwrap();
    (file, Arc::new(config))
}

#[test]
fn a_server_behind_https_is_used_as_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let (by_address, config) = certified(&folder, "127.0.0.1");
    let first = Server::safe(config);
    let (by_name, config) = certified(&folder, "localhost");
    let mut second = Server::safe(config);
    second.url = second.url.replace("127.0.0.1", "localhost");
    let trusts = |file: &PathBuf| format!("ca_file = \"{}\"", file.display());
    let config = first.config("a", &trusts(&by_address)) + &second.config("n", &trusts(&by_name));
    let stage = Stage::new(&config);
    let session = stage.session(&json!({}));
    for (name, server) in [("a", &first), ("n", &second)] {
        assert!(server.url.starts_with("https://"), "{}", server.url);
        let mut client = stage.client(&session, name);
        client.greet("somebody");
        for _ in 0..2 {
            assert!(client.said("echo", &json!({})).starts_with("echo"));
        }
        let said = client.raw(r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo"}}"#);
        assert_eq!(said.text, echoed(&json!(5)));
        assert_eq!(client.call("stream", &json!({}))["result"]["content"][0]["type"], "text");
        assert!(server.got().0.contains("x-key: secret"));
        assert_eq!(server.connections(), 1, "one connection is kept and used again");
    }
}

#[test]
fn a_certificate_that_is_not_trusted_is_said_so() {
    let folder = tempfile::tempdir().unwrap();
    let (trusted, config) = certified(&folder, "127.0.0.1");
    let server = Server::safe(config);
    let (_, other) = certified(&folder, "elsewhere.test");
    let elsewhere = Server::safe(other);
    let file = |name: &str| format!("ca_file = \"{}\"", folder.path().join(name).display());
    // The other CA's file names a CA, but not the one that signed; the name of the second does not fit.
    let plain = Server::start();
    let mut config = server.config("unknown", &file("elsewhere.test.pem"));
    config.push_str(&elsewhere.config("misnamed", &file("elsewhere.test.pem")));
    let ca_file = format!("ca_file = \"{}\"", trusted.display());
    let speechless = plain.url.replace("http://", "https://");
    let speechless = format!("[mcp.plain]\nurl = \"{speechless}\"\n{ca_file}\n");
    config.push_str(&speechless);
    let stage = Stage::new(&config);
    let session = stage.session(&json!({}));
    for (name, word) in [
        ("unknown", "not trusted: neither the system"),
        ("misnamed", "not valid for name"),
        ("plain", "no TLS connection"),
    ] {
        let answer = stage.client(&session, name).call("echo", &json!({}));
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(&format!("`{name}`")) && text.contains(word), "{text}");
        assert_eq!(stage.entry(name)["state"], "down");
        let checked = stage.post(&format!("/mcp/{name}/check"), &json!({})).json();
        assert!(checked["error"].as_str().unwrap().contains(word), "{checked}");
    }
    assert!(server.got_nothing() && elsewhere.got_nothing(), "nothing goes to somebody unknown");
}
