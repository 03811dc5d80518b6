//! The dashboard's pages: what is at a path that is no route. They hold nothing secret, so no token is asked for; what
//! they show comes from the API, which asks.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::api::App;
use crate::api::context::missing;
use crate::api::guard::{check_host, via};
use crate::dashboard::{Compression, DashboardFile, INDEX, content_type};
use crate::problem::Problem;

/// Paths programs talk to: what is unknown there is a refusal and no page.
const FOR_PROGRAMS: [&str; 3] = ["api", "mcp", "metrics"];
/// Files whose names change with their content.
const ASSETS: &str = "assets/";

const FOREVER: &str = "public, max-age=31536000, immutable";
const ASK_AGAIN: &str = "no-cache";

/// Nothing is run, shown or asked but what this daemon serves, and no other page can show these.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; \
     connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (header::X_FRAME_OPTIONS, "DENY"),
];

/// Answers what no route answers.
pub(super) async fn page(State(app): State<Arc<App>>, request: Request) -> Response {
    let name = request.uri().path().trim_start_matches('/').to_owned();
    if FOR_PROGRAMS.contains(&name.split('/').next().unwrap_or_default()) {
        return nothing_here().into_response();
    }
    let looked = match check(&app, &request) {
        Ok(()) => look(&app, name, accepted(request.headers())).await,
        Err(problem) => Err(problem),
    };
    let mut response = match looked {
        Ok((kind, caching, file)) => {
            let about = [
                (header::CONTENT_TYPE, kind),
                (header::CACHE_CONTROL, caching),
                (header::VARY, "accept-encoding"),
            ];
            let encoding = file.compression.map(|way| [(header::CONTENT_ENCODING, way.token())]);
            (about, encoding, file.bytes.into_owned()).into_response()
        }
        Err(problem) => problem.into_response(),
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Answers a route that does not know the method.
pub(super) async fn other_method() -> Problem {
    not_allowed()
}

fn not_allowed() -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        "this path does not know that method",
        "look at /api/v1/openapi.json",
    )
}

/// The kind of content, the caching, and the file.
type FoundFile = (&'static str, &'static str, DashboardFile);

/// The ways of compression that the client takes.
fn accepted(headers: &HeaderMap) -> Vec<Compression> {
    let header = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    header.map(Compression::accepted).unwrap_or_default()
}

fn check(app: &App, request: &Request) -> Result<(), Problem> {
    check_host(app, request.headers(), via(request))?;
    match *request.method() {
        Method::GET | Method::HEAD => Ok(()),
        _ => Err(not_allowed()),
    }
}

async fn look(app: &App, name: String, accepted: Vec<Compression>) -> Result<FoundFile, Problem> {
    let dashboard = app.dashboard.clone();
    let looked = tokio::task::spawn_blocking(move || match dashboard.compressed(&name, &accepted) {
        Some(file) if name.starts_with(ASSETS) => Some((content_type(&name), FOREVER, file)),
        Some(file) => Some((content_type(&name), ASK_AGAIN, file)),
        None if names_a_file(&name) => None,
        // The page itself knows which of its views the path means.
        None => Some((content_type(INDEX), ASK_AGAIN, DashboardFile::plain(dashboard.index()))),
    });
    looked.await.map_err(|_| missing("reader"))?.ok_or_else(nothing_here)
}

/// Whether a page in place of it would be a lie: a script, a picture.
fn names_a_file(name: &str) -> bool {
    name.starts_with(ASSETS) || (!name.contains('/') && name.contains('.'))
}

fn nothing_here() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "route_not_found",
        "there is nothing at this path",
        "look at /api/v1/openapi.json",
    )
}

#[cfg(test)]
mod tests {
    use super::names_a_file;

    #[test]
    fn views_are_told_from_files() {
        for view in ["", "sign-in", "sessions/sess_1", "sessions/a.b", "sessions"] {
            assert!(!names_a_file(view), "{view}");
        }
        for file in ["assets/gone.js", "assets/", "favicon.ico", "robots.txt"] {
            assert!(names_a_file(file), "{file}");
        }
    }
}
