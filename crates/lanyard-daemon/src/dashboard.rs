//! The dashboard's files: what a browser loads. A release build carries them; `LANYARD_DASHBOARD_DIR` names a folder to
//! read them from instead. It knows nothing of HTTP but the kinds of content.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use lanyard_api::names::DASHBOARD_DIR;

/// Largest file that is read from a folder.
const FILE_BYTES_MAX: u64 = 32 << 20;

/// The page every route of the dashboard begins with.
pub(crate) const INDEX: &str = "index.html";

/// Shown where no dashboard was built. It has neither script nor style, as its policy wants it.
const NOT_BUILT: &str = include_str!("dashboard/not_built.html");

mod embedded {
    //! The files as the build script found them; none in a debug build.
    include!(concat!(env!("OUT_DIR"), "/dashboard.rs"));
}

/// Where the files are.
#[derive(Debug, Clone)]
pub enum Dashboard {
    /// In the program itself; sorted by name.
    Embedded(&'static [(&'static str, &'static [u8])]),
    /// In a folder that is read at each request, so that a new build is seen at once.
    Folder(PathBuf),
}

impl Dashboard {
    /// The folder the environment names, else what the program carries.
    #[must_use]
    pub fn from_env() -> Self {
        match std::env::var_os(DASHBOARD_DIR).filter(|folder| !folder.is_empty()) {
            Some(folder) => Self::Folder(folder.into()),
            None => Self::Embedded(embedded::FILES),
        }
    }

    /// A file's bytes. Reads the disk where the files are in a folder.
    pub(crate) fn file(&self, name: &str) -> Option<Cow<'static, [u8]>> {
        if !is_plain(name) {
            return None;
        }
        match self {
            Self::Embedded(files) => {
                let place = files.binary_search_by_key(&name, |(held, _)| held).ok()?;
                files.get(place).map(|(_, bytes)| Cow::Borrowed(*bytes))
            }
            Self::Folder(folder) => read(folder, name).map(Cow::Owned),
        }
    }

    /// A file, compressed in the best way that the client takes and the build has.
    pub(crate) fn compressed(&self, name: &str, accepted: &[Compression]) -> Option<DashboardFile> {
        let best = accepted.iter().find_map(|way| {
            let bytes = self.file(&format!("{name}.{}", way.suffix()))?;
            Some(DashboardFile { bytes, compression: Some(*way) })
        });
        best.or_else(|| self.file(name).map(DashboardFile::plain))
    }

    /// The first page, or one that says how it is made.
    pub(crate) fn index(&self) -> Cow<'static, [u8]> {
        self.file(INDEX).unwrap_or(Cow::Borrowed(NOT_BUILT.as_bytes()))
    }
}

/// A file as it is sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DashboardFile {
    pub(crate) bytes: Cow<'static, [u8]>,
    pub(crate) compression: Option<Compression>,
}

impl DashboardFile {
    pub(crate) const fn plain(bytes: Cow<'static, [u8]>) -> Self {
        Self { bytes, compression: None }
    }
}

/// A way in which the build compresses files. Browsers take brotli over TLS alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    Brotli,
    Gzip,
}

impl Compression {
    /// The token of the `Accept-Encoding` and `Content-Encoding` headers.
    pub(crate) const fn token(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Gzip => "gzip",
        }
    }

    const fn suffix(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Gzip => "gz",
        }
    }

    /// The ways that a client takes, the best first. A way of weight 0 is refused by the client.
    pub(crate) fn accepted(header: &str) -> Vec<Self> {
        let taken = |way: &Self| {
            header.split(',').any(|part| {
                let mut words = part.split(';').map(str::trim);
                let named = words.next().is_some_and(|name| name.eq_ignore_ascii_case(way.token()));
                let refused = words.any(|word| matches!(word, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"));
                named && !refused
            })
        };
        [Self::Brotli, Self::Gzip].into_iter().filter(taken).collect()
    }
}

/// A file in the folder, and not one that a link in it leads to elsewhere.
fn read(folder: &Path, name: &str) -> Option<Vec<u8>> {
    let folder = folder.canonicalize().ok()?;
    let path = folder.join(name).canonicalize().ok()?;
    let about = path.metadata().ok()?;
    if !path.starts_with(&folder) || !about.is_file() || about.len() > FILE_BYTES_MAX {
        return None;
    }
    std::fs::read(path).ok()
}

/// Whether every part of a path is a name as a bundler gives them: nothing escaped, hidden, empty or leading up.
fn is_plain(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '~' | '@' | '+');
    name.split('/').all(|part| !part.is_empty() && !part.starts_with('.') && part.chars().all(fits))
}

/// What a file is, by its name.
pub(crate) fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "woff" => "font/woff",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_out_of_the_folder() {
        let outside = tempfile::tempdir().unwrap();
        let folder = outside.path().join("dist");
        std::fs::create_dir_all(folder.join("assets")).unwrap();
        std::fs::write(outside.path().join("secret"), "s").unwrap();
        std::fs::write(folder.join("assets/a.js"), "a").unwrap();
        std::fs::write(folder.join(".hidden"), "h").unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret"), folder.join("link")).unwrap();
        let dashboard = Dashboard::Folder(folder);
        assert_eq!(dashboard.file("assets/a.js").as_deref(), Some(b"a".as_slice()));
        for name in [
            "../secret",
            "assets/../../secret",
            "..%2fsecret",
            "%2e%2e/secret",
            "/etc/passwd",
            "//etc/passwd",
            "assets",
            "assets/",
            ".hidden",
            "link",
            "assets\\a.js",
            "a\0b",
            "",
            ".",
            "..",
        ] {
            assert_eq!(dashboard.file(name), None, "{name}");
        }
    }

    #[test]
    fn what_the_program_carries_is_found_by_its_whole_name() {
        const FILES: &[(&str, &[u8])] = &[("assets/a.js", b"a"), ("index.html", b"i")];
        let dashboard = Dashboard::Embedded(FILES);
        assert_eq!(dashboard.file("assets/a.js").as_deref(), Some(b"a".as_slice()));
        assert_eq!(dashboard.file("a.js"), None);
        assert_eq!(&*dashboard.index(), b"i");
    }

    #[test]
    fn fnd_d18_a_file_is_sent_in_the_best_way_that_the_client_takes() {
        const FILES: &[(&str, &[u8])] = &[
            ("a.js", b"plain"),
            ("a.js.br", b"br"),
            ("a.js.gz", b"gz"),
            ("b.js", b"plain"),
            ("b.js.gz", b"gz"),
        ];
        let dashboard = Dashboard::Embedded(FILES);
        let sent = |name: &str, header: &str| {
            let file = dashboard.compressed(name, &Compression::accepted(header)).unwrap();
            (String::from_utf8(file.bytes.into_owned()).unwrap(), file.compression.map(Compression::token))
        };
        for header in ["gzip, deflate, br, zstd", "br", "BR;q=0.5, gzip"] {
            assert_eq!(sent("a.js", header), ("br".to_owned(), Some("br")), "{header}");
        }
        for header in ["gzip, deflate", "br;q=0, gzip", "br; q=0.0,gzip;q=1"] {
            assert_eq!(sent("a.js", header), ("gz".to_owned(), Some("gzip")), "{header}");
        }
        for header in ["", "identity", "gzip;q=0", "brotli", "*"] {
            assert_eq!(sent("a.js", header), ("plain".to_owned(), None), "{header}");
        }
        assert_eq!(sent("b.js", "br, gzip"), ("gz".to_owned(), Some("gzip")));
        assert_eq!(dashboard.compressed("c.js", &[Compression::Gzip]), None);
    }

    #[test]
    fn without_a_build_the_page_says_how_to_make_one() {
        let index = Dashboard::Embedded(&[]).index();
        let text = std::str::from_utf8(&index).unwrap();
        assert!(text.contains("cargo xtask up"), "{text}");
        assert!(!text.contains("<script") && !text.contains("style"), "the policy forbids them: {text}");
    }
}
