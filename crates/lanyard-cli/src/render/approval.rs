//! An agent's open approval as text: the agent, the request, and the command that answers.

use lanyard_api::types::GateEntry;

use crate::render::text::one_line;

/// Two lines without a break at the end.
pub(crate) fn approval(entry: &GateEntry) -> String {
    let gate = &entry.gate;
    let agent = entry.agent.as_deref().map_or_else(|| "its agent".to_owned(), one_line);
    let title = one_line(&gate.question.title);
    let options: Vec<String> = gate.question.options.iter().map(|option| one_line(&option.id)).collect();
    let options = if options.is_empty() { String::new() } else { format!(" (or: {})", options.join(", ")) };
    format!(
        "{agent} in {} asks for approval: {title}\n  answer it with `lanyard answer {} allow` or `deny`{options}",
        entry.session, gate.id
    )
}

/// Below a card; empty without open approvals.
pub(crate) fn approvals(entries: &[GateEntry]) -> String {
    entries.iter().flat_map(|entry| ["\n".to_owned(), approval(entry), "\n".to_owned()]).collect()
}
