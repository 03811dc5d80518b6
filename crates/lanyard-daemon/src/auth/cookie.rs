//! The cookie a browser is signed in by. It holds an ordinary token. Browsers keep one jar for all ports of a host, so
//! its name has the daemon's port in it, and changes need more than the cookie.

use axum::http::{HeaderMap, header};

/// How long a browser keeps it: 30 days. The token itself is good until it is revoked.
const MAX_AGE_SECONDS: u32 = 30 * 24 * 60 * 60;

/// The token a browser sent for the daemon at this port.
pub(crate) fn read(headers: &HeaderMap, port: u16) -> Option<&str> {
    let sent = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = sent.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let name = name(port);
    pairs.find_map(|(held, token)| (held == name).then_some(token)).filter(|token| !token.is_empty())
}

/// What signs a browser in. No script can read it, and no page of another site gets it sent along.
pub(crate) fn set(port: u16, token: &str) -> String {
    with(port, token, MAX_AGE_SECONDS)
}

/// What signs it out again.
pub(crate) fn cleared(port: u16) -> String {
    with(port, "", 0)
}

fn with(port: u16, token: &str, max_age: u32) -> String {
    format!("{}={token}; HttpOnly; SameSite=Strict; Path=/; Max-Age={max_age}", name(port))
}

fn name(port: u16) -> String {
    format!("lanyard_{port}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(lines: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::COOKIE, line.parse().unwrap());
        }
        headers
    }

    #[test]
    fn only_the_cookie_of_this_port_counts() {
        assert_eq!(read(&sent(&["a=b; lanyard_7717=lyd_x; c=d"]), 7717), Some("lyd_x"));
        assert_eq!(read(&sent(&["a=b", "lanyard_7717=lyd_x"]), 7717), Some("lyd_x"));
        assert_eq!(read(&sent(&["lanyard_7718=lyd_x; xlanyard_7717=lyd_y"]), 7717), None);
        assert_eq!(read(&sent(&["lanyard_7717="]), 7717), None);
        assert_eq!(read(&sent(&["lanyard_7717"]), 7717), None);
        assert_eq!(read(&sent(&[]), 7717), None);
    }

    #[test]
    fn no_script_and_no_other_site_gets_it() {
        let expected = "lanyard_1=lyd_x; HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000";
        assert_eq!(set(1, "lyd_x"), expected);
        assert_eq!(cleared(1), "lanyard_1=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
    }
}
