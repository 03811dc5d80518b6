//! What came of a flow, for people and for programs. Made from its log alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::flow::event::FlowEnvelope;
use crate::flow::record::Flow;

/// A flow told as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    pub title: String,
}

/// Adds a flow's log up to a report.
#[must_use]
pub fn report(flow: &Flow, _log: &[FlowEnvelope]) -> Report {
    Report { title: flow.title.clone() }
}

/// A report to be read by people.
#[must_use]
pub fn markdown(report: &Report) -> String {
    format!("# {}\n", report.title)
}
