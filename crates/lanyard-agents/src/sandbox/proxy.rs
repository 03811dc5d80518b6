//! The way from a sandbox to the hosts of its list: a proxy for `CONNECT`, in the shim. It decides by the name and port that
//! the client asks for, looks the name up itself, and carries bytes; what they are is not looked at.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use lanyard_core::session::AllowedHost;

use super::bridge::{both_ways, serve};

/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 8 * 1024;
/// How long a client may take to ask, and a host to answer.
const ASK_WAIT: Duration = Duration::from_secs(30);
const CONNECT_WAIT: Duration = Duration::from_secs(20);
/// Addresses of one host that are tried.
const ADDRESSES_MAX: usize = 4;
/// Bytes of the list of connections in the run's folder. Later ones are not written down.
const LOG_BYTES_MAX: u64 = 256 * 1024;

/// An answer other than 200.
struct ProxyRefusal {
    status: &'static str,
    what: String,
}

/// Serves until the process ends. `log` gets a line for each connection.
pub fn connect_for(listener: UnixListener, hosts: &[String], log: PathBuf) -> io::Result<()> {
    let hosts: Vec<AllowedHost> = hosts.iter().filter_map(|host| AllowedHost::read(host)).collect();
    serve(
        move || listener.accept().map(|(stream, _)| stream),
        move |stream| {
            let _ = answer(stream, &hosts, &log);
        },
    )
}

fn answer(mut client: UnixStream, hosts: &[AllowedHost], log: &PathBuf) -> io::Result<()> {
    client.set_read_timeout(Some(ASK_WAIT))?;
    let head = read_head(&mut client)?;
    let asked = target(&head);
    let reached =
        asked.as_ref().map_err(|refusal| ProxyRefusal { status: refusal.status, what: refusal.what.clone() });
    let reached = reached.and_then(|(host, port)| reach(host, *port, hosts));
    let name = asked.as_ref().map_or_else(|_| "?".to_owned(), |(host, port)| format!("{host}:{port}"));
    match reached {
        Ok(there) => {
            note(log, &format!("connected {name}"));
            client.set_read_timeout(None)?;
            client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
            both_ways(client, &there)
        }
        Err(ProxyRefusal { status, what }) => {
            note(log, &format!("refused {name}: {what}"));
            let body = format!("lanyard: {what}\n");
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            client.write_all(head.as_bytes())?;
            client.write_all(body.as_bytes())?;
            client.shutdown(Shutdown::Write)
        }
    }
}

/// Byte by byte, since what follows the head belongs to the host.
fn read_head(client: &mut UnixStream) -> io::Result<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= HEAD_BYTES_MAX || client.read(&mut byte)? == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        head.push(byte[0]);
    }
    String::from_utf8(head).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// The host and port that a request asks for.
fn target(head: &str) -> Result<(String, u16), ProxyRefusal> {
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let (method, asked) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if method != "CONNECT" {
        let what = "this proxy takes CONNECT only; use https".to_owned();
        return Err(ProxyRefusal { status: "405 Method Not Allowed", what });
    }
    let parts = asked.rsplit_once(':').and_then(|(host, port)| Some((host.to_owned(), port.parse().ok()?)));
    parts.ok_or_else(|| ProxyRefusal {
        status: "400 Bad Request",
        what: "no host and port are named".to_owned(),
    })
}

fn reach(host: &str, port: u16, hosts: &[AllowedHost]) -> Result<TcpStream, ProxyRefusal> {
    let Some(entry) = hosts.iter().find(|entry| entry.allows(host, port)) else {
        let what = format!("{host}:{port} is not in the network list of this sandbox");
        return Err(ProxyRefusal { status: "403 Forbidden", what });
    };
    let unreached = |what: String| ProxyRefusal { status: "502 Bad Gateway", what };
    let found =
        (host, port).to_socket_addrs().map_err(|error| unreached(format!("{host} is not found: {error}")))?;
    let found: Vec<SocketAddr> =
        found.filter(|address| entry.is_literal() || is_elsewhere(address.ip())).collect();
    let mut last = format!("{host} has no address that may be connected to");
    for address in found.iter().take(ADDRESSES_MAX) {
        match TcpStream::connect_timeout(address, CONNECT_WAIT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = format!("{host}:{port} does not answer: {error}"),
        }
    }
    Err(unreached(last))
}

/// Not this machine, and no address that only means something on its own link: a name of the list may be made to lead there.
fn is_elsewhere(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            !(v4.is_loopback() || v4.is_link_local() || v4.is_unspecified() || v4.is_multicast())
        }
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => is_elsewhere(IpAddr::V4(v4)),
            None => {
                !(v6.is_loopback() || v6.is_unicast_link_local() || v6.is_unspecified() || v6.is_multicast())
            }
        },
    }
}

fn note(log: &PathBuf, line: &str) {
    let Ok(mut file) = OpenOptions::new().append(true).create(true).mode(0o600).open(log) else { return };
    if file.metadata().is_ok_and(|meta| meta.len() < LOG_BYTES_MAX) {
        let _ = writeln!(file, "{}", lanyard_core::text::one_line(line, 400));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_connect_with_a_host_and_a_port_is_understood() {
        for (head, asked) in [
            ("CONNECT a.org:443 HTTP/1.1\r\n\r\n", Ok(("a.org".to_owned(), 443))),
            ("GET http://a.org/ HTTP/1.1\r\n\r\n", Err("405 Method Not Allowed")),
            ("CONNECT a.org HTTP/1.1\r\n\r\n", Err("400 Bad Request")),
            ("\r\n\r\n", Err("405 Method Not Allowed")),
        ] {
            assert_eq!(target(head).map_err(|refusal| refusal.status), asked, "{head:?}");
        }
    }

    #[test]
    fn a_name_does_not_lead_back_to_this_machine() {
        for (address, elsewhere) in [
            ("93.184.216.34", true),
            ("10.0.0.1", true),
            ("127.0.0.1", false),
            ("169.254.169.254", false),
            ("0.0.0.0", false),
            ("::1", false),
            ("fe80::1", false),
            ("::ffff:127.0.0.1", false),
            ("2606:2800:220:1::1", true),
        ] {
            assert_eq!(is_elsewhere(address.parse().unwrap()), elsewhere, "{address}");
        }
    }
}
