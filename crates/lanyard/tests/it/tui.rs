//! `lanyard attach` and `lanyard top` in a real terminal, against a real daemon with agents that work.

mod attach;
mod choice;
mod flow;
mod plain;
mod plan;
mod program_states;
mod programs;
mod question;
mod start;
mod terminal;
mod top;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
