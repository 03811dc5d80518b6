//! An answer as it comes, message by message: those of a stream, or the one that is the whole body.

use axum::http::header;
use axum::response::Response;
use bytes::Bytes;

use super::sse::{self, Frames};
use crate::http_endpoint::Lent;
use crate::http_endpoint::Trouble;
use crate::mcp::rpc;
use crate::mcp::server::ANSWER_BYTES_MAX;

#[derive(Debug)]
pub(in crate::mcp) struct Talk {
    body: Option<Lent>,
    frames: Frames,
    is_stream: bool,
}

impl Talk {
    pub(in crate::mcp) fn of(answer: Response<Lent>) -> Self {
        let kind = answer.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let is_stream = kind.is_some_and(|kind| kind.starts_with(rpc::SSE));
        Self { body: Some(answer.into_body()), frames: Frames::default(), is_stream }
    }

    pub(in crate::mcp) fn is_stream(&self) -> bool {
        self.is_stream
    }

    /// The next message; nothing at the end.
    pub(in crate::mcp) async fn next(&mut self) -> Result<Option<Bytes>, Trouble> {
        if !self.is_stream {
            let Some(body) = self.body.take() else { return Ok(None) };
            return body.whole(ANSWER_BYTES_MAX).await.map(Some);
        }
        let Some(body) = &mut self.body else { return Ok(None) };
        while let Some(frame) = self.frames.next(body).await {
            if let Some(data) = sse::data_of(&frame) {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}
