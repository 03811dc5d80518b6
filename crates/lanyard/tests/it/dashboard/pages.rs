//! The pages: which path is which, what protects them, and that no path leads elsewhere.

use std::path::Path;

use super::browser::Browser;
use crate::support::{Answer, Daemon, Setup};

const INDEX: &str = "<!doctype html><title>Lanyard</title>";

/// A folder beside which a secret lies, and a daemon that shows the folder.
fn stage() -> (tempfile::TempDir, Daemon) {
    let folder = tempfile::tempdir().unwrap();
    let dist = folder.path().join("dist");
    std::fs::create_dir_all(dist.join("assets")).unwrap();
    std::fs::write(dist.join("index.html"), INDEX).unwrap();
    std::fs::write(dist.join("favicon.svg"), "<svg/>").unwrap();
    std::fs::write(dist.join("assets/app-1a2b.js"), "run()").unwrap();
    std::fs::write(dist.join("assets/app-1a2b.css"), "a{}").unwrap();
    std::fs::write(folder.path().join("secret.txt"), "secret").unwrap();
    std::os::unix::fs::symlink(folder.path().join("secret.txt"), dist.join("assets/link.txt")).unwrap();
    let daemon = Daemon::start(Setup::default().env("LANYARD_DASHBOARD_DIR", &dist));
    (folder, daemon)
}

fn is_protected(answer: &Answer, path: &str) {
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("x-frame-options", "DENY"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{name} of {path}");
    }
    let policy = answer.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{policy}");
    assert!(policy.ends_with("form-action 'self'; frame-ancestors 'none'"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
}

#[test]
fn files_are_served_as_what_they_are_and_views_as_the_page() {
    let (folder, daemon) = stage();
    let browser = Browser::new(&daemon);
    for (path, kind, caching, text) in [
        ("/", "text/html; charset=utf-8", "no-cache", INDEX),
        ("/index.html", "text/html; charset=utf-8", "no-cache", INDEX),
        ("/sign-in", "text/html; charset=utf-8", "no-cache", INDEX),
        ("/sessions/sess_01m7n5djg0fayvh8t5cxyjkdnf", "text/html; charset=utf-8", "no-cache", INDEX),
        ("/sessions/my%3A%3Aown?tab=log", "text/html; charset=utf-8", "no-cache", INDEX),
        ("/favicon.svg", "image/svg+xml", "no-cache", "<svg/>"),
        (
            "/assets/app-1a2b.js",
            "text/javascript; charset=utf-8",
            "public, max-age=31536000, immutable",
            "run()",
        ),
        ("/assets/app-1a2b.css", "text/css; charset=utf-8", "public, max-age=31536000, immutable", "a{}"),
    ] {
        let answer = browser.get(path);
        assert_eq!((answer.status, answer.text().as_str()), (200, text), "{path}");
        assert_eq!(answer.header("content-type"), Some(kind), "{path}");
        assert_eq!(answer.header("cache-control"), Some(caching), "{path}");
        is_protected(&answer, path);
    }
    // The copies that the build puts beside a file.
    for (suffix, token) in [("br", "br"), ("gz", "gzip")] {
        std::fs::write(folder.path().join(format!("dist/assets/app-1a2b.js.{suffix}")), token).unwrap();
    }
    for (accepted, token) in [("gzip, deflate, br, zstd", "br"), ("gzip, deflate", "gzip")] {
        let answer = browser.send("GET", "/assets/app-1a2b.js", &[("accept-encoding", accepted)], None);
        assert_eq!((answer.status, answer.text().as_str()), (200, token), "{accepted}");
        assert_eq!(answer.header("content-encoding"), Some(token), "{accepted}");
        assert_eq!(answer.header("vary"), Some("accept-encoding"), "{accepted}");
        assert_eq!(answer.header("content-type"), Some("text/javascript; charset=utf-8"), "{accepted}");
        is_protected(&answer, accepted);
    }
    assert_eq!(browser.get("/assets/app-1a2b.js").header("content-encoding"), None);
    let host = daemon.address();
    let stream = std::net::TcpStream::connect(&host).unwrap();
    let mut reader = std::io::BufReader::new(stream);
    let head = crate::support::head("HEAD", "/", &[("host", &host)], None);
    std::io::Write::write_all(reader.get_mut(), head.as_bytes()).unwrap();
    let answer = crate::support::read_head(&mut reader).unwrap();
    assert_eq!((answer.status, answer.header("content-length")), (200, Some(&*INDEX.len().to_string())));
    let mut rest = Vec::new();
    std::io::Read::read_to_end(&mut reader, &mut rest).unwrap();
    assert_eq!(rest, b"", "a head has no body");
}

#[test]
fn what_is_missing_is_said_and_not_shown_as_a_page() {
    let (_folder, daemon) = stage();
    let browser = Browser::new(&daemon);
    for path in ["/assets/gone.js", "/assets/", "/assets", "/robots.txt", "/favicon.ico"] {
        let answer = browser.get(path);
        if path == "/assets" {
            assert_eq!(answer.text(), INDEX, "a view, as far as anyone knows");
            continue;
        }
        assert_eq!((answer.status, answer.code().as_str()), (404, "route_not_found"), "{path}");
        is_protected(&answer, path);
    }
    for path in ["/api", "/api/", "/api/v1", "/api/v1/nothing", "/api/v2/x", "/mcp", "/mcp/x", "/metrics/x"] {
        let answer = browser.get(path);
        assert_eq!((answer.status, answer.code().as_str()), (404, "route_not_found"), "{path}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{path}");
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let answer = browser.send(method, "/sign-in", &[], None);
        assert_eq!((answer.status, answer.code().as_str()), (405, "method_not_allowed"), "{method}");
    }
}

#[test]
fn no_path_leads_out_of_the_folder() {
    let (folder, daemon) = stage();
    let browser = Browser::new(&daemon);
    assert!(Path::new(&folder.path().join("secret.txt")).exists());
    for path in [
        "/../secret.txt",
        "/assets/../../secret.txt",
        "/assets/..%2f..%2fsecret.txt",
        "/assets/%2e%2e/%2e%2e/secret.txt",
        "/%2e%2e/secret.txt",
        "/..%5csecret.txt",
        "/assets/..\\..\\secret.txt",
        "//etc/passwd",
        "/assets//etc/passwd",
        "/assets/link.txt",
        "/.%00./secret.txt",
        "/assets/%2f%2e%2e",
    ] {
        let answer = browser.get(path);
        assert!(!answer.text().contains("secret") && !answer.text().contains("root:"), "{path}");
        assert!(answer.status != 200 || answer.text() == INDEX, "{path}: {}", answer.text());
    }
}

/// Against DNS rebinding: the pages too answer to their own names only.
#[test]
fn pages_are_shown_under_the_daemons_own_names_only() {
    let (_folder, daemon) = stage();
    let ask = |host: &str| {
        let stream = std::net::TcpStream::connect(daemon.address()).unwrap();
        crate::support::exchange(stream, "GET", "/", &[("host", host)], None).unwrap()
    };
    for host in ["evil.example", "localhost", "127.0.0.1:1"] {
        assert_eq!(ask(host).code(), "host_not_allowed", "{host}");
    }
    let port = daemon.address().rsplit_once(':').unwrap().1.to_owned();
    assert_eq!(ask(&format!("localhost:{port}")).status, 200);
}

/// A debug build carries no dashboard: the page says how to get one, under the same policy.
#[test]
fn without_a_build_the_page_says_how_to_make_one() {
    let empty = tempfile::tempdir().unwrap();
    for setup in [Setup::default(), Setup::default().env("LANYARD_DASHBOARD_DIR", empty.path())] {
        let daemon = Daemon::start(setup.env("LANYARD_LOG", "info"));
        let answer = Browser::new(&daemon).get("/");
        assert_eq!(answer.status, 200);
        is_protected(&answer, "/");
        assert!(answer.text().contains("cargo xtask up"), "{}", answer.text());
        assert!(!answer.text().contains("<script") && !answer.text().contains("style"));
    }
}
