//! The driver of a program on a terminal: nothing is said to it but what people type, and nothing is read from it but
//! its screen, which the runner keeps.

use lanyard_core::TurnId;
use lanyard_core::session::{AgentInfo, Capabilities, Question};

use super::driver::{Action, Actions, Answer, Begin, Driver, Opened, Readiness, Setting};
use super::given::GivenPrompt;

/// What stands for a conversation that no protocol names.
const NATIVE: &str = "terminal";
/// The protocol, as the log has it.
const PROTOCOL: &str = "terminal";

#[derive(Debug)]
pub(crate) struct OnTerminal {
    program: String,
    begin: Begin,
}

impl OnTerminal {
    pub(crate) fn new(program: Option<&String>, setting: Setting) -> Self {
        let name = program.map(|program| program.rsplit('/').next().unwrap_or(program).to_owned());
        Self { program: name.unwrap_or_default(), begin: setting.begin }
    }
}

impl Driver for OnTerminal {
    fn begin(&mut self, out: &mut Actions) {
        match self.begin {
            Begin::Adopted { .. } => {}
            Begin::New | Begin::Resume { .. } => out.push(Action::Ready(Box::new(Readiness {
                native: NATIVE.to_owned(),
                info: AgentInfo { name: self.program.clone(), version: None, protocol: PROTOCOL.to_owned() },
                capabilities: Capabilities::default(),
                how: Opened::New,
            }))),
        }
    }

    fn line(&mut self, _line: &[u8], _out: &mut Actions) {}

    fn prompt(&mut self, _turn: TurnId, _native: Option<&str>, _prompt: GivenPrompt<'_>, _out: &mut Actions) {
    }

    fn cancel(&mut self, _turn: TurnId, _native: Option<&str>, _out: &mut Actions) {}

    fn answer(&mut self, _question: &Question, _answer: &Answer, _out: &mut Actions) {}
}
