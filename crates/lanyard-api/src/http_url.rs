//! Addresses of HTTP servers as the config has them: everything that can be wrong without connecting.

use hyper::Uri;

/// The parts of an `http://` or `https://` address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpUrl {
    /// Whether it begins with `https://`.
    pub secure: bool,
    /// The host, without the brackets of an IPv6 address.
    pub host: String,
    pub port: u16,
    /// Host and port as they were written, for the `Host` header.
    pub authority: String,
    pub path_and_query: String,
}

impl HttpUrl {
    /// The parts of the address, or a sentence of what is wrong with it.
    pub fn parse(url: &str) -> Result<Self, String> {
        let url: Uri = url.parse().map_err(|error| format!("it is no address: {error}"))?;
        let (secure, port) = match url.scheme_str() {
            Some("http") => (false, 80),
            Some("https") => (true, 443),
            _ => return Err("it begins with neither http:// nor https://".to_owned()),
        };
        let authority = url.authority().ok_or("it names no host")?;
        Ok(Self {
            secure,
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port: authority.port_u16().unwrap_or(port),
            authority: authority.to_string(),
            path_and_query: url.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_scheme_and_a_host_and_defaults_for_the_rest() {
        let parts = |url: &str| {
            let url = HttpUrl::parse(url)?;
            Ok::<_, String>((url.secure, url.host, url.port, url.authority, url.path_and_query))
        };
        let all = |secure, host: &str, port, authority: &str, path: &str| {
            Ok((secure, host.to_owned(), port, authority.to_owned(), path.to_owned()))
        };
        assert_eq!(parts("http://x.test"), all(false, "x.test", 80, "x.test", "/"));
        assert_eq!(parts("https://x.test/a?b=c"), all(true, "x.test", 443, "x.test", "/a?b=c"));
        assert_eq!(parts("http://[::1]:9/"), all(false, "::1", 9, "[::1]:9", "/"));
        for bad in ["", "x.test", "ftp://x.test/", "http://", "http://a b/"] {
            assert!(parts(bad).is_err(), "{bad}");
        }
    }
}
