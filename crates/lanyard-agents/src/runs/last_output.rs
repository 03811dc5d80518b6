//! The end of what a command wrote, and how it ended.

use super::{Exit, Link};

/// Bytes at the end of a command's output that are kept.
const OUTPUT_MAX: usize = 32 * 1024;

#[derive(Debug, Clone)]
pub struct LastOutput {
    pub exit: Option<Exit>,
    pub text: String,
    pub truncated: bool,
}

/// Reads to the end, and keeps the last of it. What is behind is given back, or a command that writes without end would
/// be stopped by a full spool.
pub async fn last_output(link: Link) -> LastOutput {
    let mut output = link.output(link.consumed_to());
    let (mut kept, mut truncated) = (Vec::new(), output.at() > 0);
    while let Ok(Some(piece)) = output.next().await {
        kept.extend_from_slice(&piece);
        if kept.len() > 2 * OUTPUT_MAX {
            kept.drain(..kept.len() - OUTPUT_MAX);
            truncated = true;
            link.consumed(output.at() - OUTPUT_MAX as u64);
        }
    }
    let exit = link.exited().await;
    let errors = link.stderr_tail();
    if !errors.is_empty() {
        kept.extend_from_slice(errors.as_bytes());
    }
    if kept.len() > OUTPUT_MAX {
        kept.drain(..kept.len() - OUTPUT_MAX);
        truncated = true;
    }
    LastOutput { exit: Some(exit), text: String::from_utf8_lossy(&kept).into_owned(), truncated }
}
