//! What every connection talks to: the router, and in front of it a short way for the one request that comes by the
//! thousand, a message of an MCP client. It passes the same gate, with the access its row of the table asks for; the
//! router would answer it alike, and slower.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use tower::ServiceExt;

use crate::api::App;
use crate::api::guard::{Asked, admit, in_address};
use crate::api::mcp;
use crate::api::right::{Right, bounded, streams};
use crate::api::routes::table;
use crate::auth::Access;
use crate::problem::Problem;
use crate::server::{Respond, Via};

/// The row of the table that is answered here.
const ROW: &str = "mcp_message";

/// Everything there is to answer with; one for all connections.
#[derive(Debug)]
pub struct Front {
    app: Arc<App>,
    router: Router,
    /// What the row asks of its caller; without it the router answers.
    access: Option<Access>,
}

impl Front {
    #[must_use]
    pub fn new(app: &Arc<App>, router: Router) -> Self {
        let row = table().into_iter().find(|row| row.name == ROW);
        let access = row.filter(|row| row.method == "post").map(|row| row.access);
        Self { app: app.clone(), router, access }
    }

    async fn message(&self, access: Access, via: Via, request: Request<Incoming>) -> Response {
        let (parts, body) = request.into_parts();
        // Looked at once more rather than copied.
        let Some((named, server)) = place(parts.uri.path()) else {
            return StatusCode::NOT_FOUND.into_response();
        };
        let asked = Asked { method: &parts.method, headers: &parts.headers, uri: &parts.uri };
        match admit(&self.app, access, in_address(named), asked, via).await {
            Ok((caller, target)) => {
                let whose = (target, caller.proof());
                match mcp::message(&self.app, whose, server, parts.headers, body).await {
                    Ok(response) if streams(&response) => {
                        bounded(response, Right::new(&self.app, &caller, target))
                    }
                    Ok(response) => response,
                    Err(problem) => problem.into_response(),
                }
            }
            Err(problem) => problem.into_response(),
        }
    }
}

impl Respond for Front {
    async fn answer(self: Arc<Self>, via: Via, mut request: Request<Incoming>) -> Response {
        if is_ambiguous(request.headers()) {
            return ambiguous();
        }
        if let Some(access) = self.access
            && request.method() == Method::POST
            && place(request.uri().path()).is_some()
        {
            // Aside: every connection keeps room for the largest answer, also one that only listens.
            return Box::pin(self.message(access, via, request)).await;
        }
        request.extensions_mut().insert(via);
        let router = self.router.clone();
        match router.oneshot(request.map(Body::new)).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

/// Whether two readers of the request could take it for two different ones.
fn is_ambiguous(headers: &HeaderMap) -> bool {
    let more_than_one = |name| headers.get_all(name).iter().nth(1).is_some();
    more_than_one(header::HOST) || more_than_one(header::AUTHORIZATION)
}

/// The connection ends with it: what follows on it may not be what it seems.
fn ambiguous() -> Response {
    let problem = Problem::new(
        StatusCode::BAD_REQUEST,
        "request_ambiguous",
        "the request has more than one Host or Authorization header",
        "send each of them once",
    );
    let mut response = problem.into_response();
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The session and the server in `/mcp/SESSION/SERVER`, where nothing in it is escaped.
fn place(path: &str) -> Option<(&str, &str)> {
    let (session, server) = path.strip_prefix("/mcp/")?.split_once('/')?;
    let is_plain = |part: &str| !part.is_empty() && !part.contains(['/', '%']);
    (is_plain(session) && is_plain(server)).then_some((session, server))
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn only_plain_addresses_go_the_short_way() {
        assert_eq!(place("/mcp/sess_1/echo"), Some(("sess_1", "echo")));
        assert_eq!(place("/mcp/-/files@agent"), Some(("-", "files@agent")));
        for path in
            ["/mcp/a", "/mcp/a/", "/mcp//b", "/mcp/a/b/c", "/mcp/a%2Fb/c", "/mcp/a/b%20c", "/mcpx/a/b"]
        {
            assert_eq!(place(path), None, "{path}");
        }
    }
}
